#include "store/artifact_holds.hpp"

#include <gtest/gtest.h>

#include "unit/store/artifact_store_fixture.hpp"

namespace pipeline::store {
namespace {

TEST_F(ArtifactStoreTest, removes_no_artifact_that_is_being_recorded) {
  auto first = store.take(write("first", "same"));
  auto second = store.take(write("second", "same"));
  ASSERT_EQ(first.digest, second.digest);
  const auto other = store.take(write_tree("tree")).digest;
  const std::vector digests{first.digest, other};
  first.hold.reset();
  const auto removed = store.remove(digests);
  EXPECT_TRUE(store.has(second.digest)) << "the other output is not recorded yet";
  EXPECT_FALSE(store.has(other));
  second.hold.reset();
  const auto removed_later = store.remove(digests);
  EXPECT_FALSE(store.has(second.digest));
}

TEST_F(ArtifactStoreTest, removes_an_artifact_without_making_its_other_links_writable) {
  const auto digest = store.take(write("file", "linked")).digest;
  const auto link = folder.path() / "link";
  store.link_out(digest, link);
  const auto removed = store.remove(std::span(&digest, 1));
  EXPECT_FALSE(store.has(digest));
  EXPECT_EQ(mode(link), 0444u);
}

TEST_F(ArtifactStoreTest, removes_content_from_the_disk_when_the_caller_wants_that) {
  const auto digest = store.take(write_tree("tree")).digest;
  auto removed = store.remove(std::span(&digest, 1));
  EXPECT_EQ(leftovers(), 1u);
  removed.reset();
  EXPECT_EQ(leftovers(), 0u);
}

}  // namespace
}  // namespace pipeline::store

// The store's notes of artifacts that are in a remote store.
#include "unit/store/artifact_store_fixture.hpp"

namespace pipeline::store {
namespace {

const core::Digest digest = core::sha256("content");
const model::Elsewhere in_bucket{
    .is_executable = true, .bytes = 7, .store = "{\"url\":\"s3://a\"}"};

TEST_F(ArtifactStoreTest, knows_artifacts_elsewhere_until_they_are_forgotten) {
  EXPECT_FALSE(store.elsewhere(digest));
  EXPECT_FALSE(store.is_known(digest));
  store.note_elsewhere(digest, in_bucket);
  const auto found = store.elsewhere(digest);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_executable);
  EXPECT_FALSE(found->is_directory);
  EXPECT_EQ(found->bytes, 7u);
  EXPECT_EQ(found->store, in_bucket.store);
  EXPECT_TRUE(store.is_known(digest));
  EXPECT_TRUE(store.is_kept(digest));
  EXPECT_FALSE(store.has(digest));
  EXPECT_FALSE(store.looks_whole(digest)) << "whoever reads it has to fetch it";
  EXPECT_TRUE(store.all().empty());
  store.forget_elsewhere(digest);
  EXPECT_FALSE(store.is_known(digest));
}

TEST_F(ArtifactStoreTest, uses_a_note_of_an_artifact_elsewhere_only_while_it_is_not_here) {
  store.note_elsewhere(digest, in_bucket);
  store.take(write("file", "content"));
  EXPECT_FALSE(store.elsewhere(digest));
  EXPECT_TRUE(store.looks_whole(digest));
  fs::remove(store.path(digest));
  EXPECT_TRUE(store.elsewhere(digest));
}

TEST_F(ArtifactStoreTest, removes_notes_that_nothing_uses) {
  const auto other = core::sha256("other");
  store.note_elsewhere(digest, in_bucket);
  store.note_elsewhere(other, in_bucket);
  EXPECT_EQ(store.collect([&](const core::Digest& each) { return each == digest; }), 0u);
  EXPECT_TRUE(store.elsewhere(digest));
  EXPECT_FALSE(store.elsewhere(other));
  const auto removed = store.remove(std::span(&digest, 1));
  EXPECT_FALSE(store.is_known(digest));
}

TEST_F(ArtifactStoreTest, ignores_a_note_of_another_form) {
  store.note_elsewhere(digest, in_bucket);
  auto note = store.path(digest);
  note += ".elsewhere";
  for (const auto* text : {"", "[]", "{\"bytes\": -1}", "{\"is_directory\": 3}"}) {
    std::ofstream(note) << text;
    EXPECT_FALSE(store.elsewhere(digest)) << text;
  }
}

}  // namespace
}  // namespace pipeline::store

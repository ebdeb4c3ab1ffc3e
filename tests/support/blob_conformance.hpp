/// @file
/// The requirements on every remote store, as one test suite: a program includes this and
/// instantiates the suite for its store.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "blobs/kind.hpp"
#include "blobs/remote_artifacts.hpp"
#include "core/digest.hpp"
#include "core/file.hpp"
#include "file_tree/tree.hpp"
#include "support/run_task.hpp"
#include "support/sanitizers.hpp"

namespace pipeline::test {

struct StoreUnderTest {
  std::string name;
  /// Returns the settings of an empty store.
  /// @param keeps receives what the store needs, such as a server; it is destroyed after the store
  std::function<settings::RemoteStoreSettings(asio::io_context&, std::shared_ptr<void>& keeps)>
      make;
  bool has_conditional_writes = true;
};
inline void PrintTo(const StoreUnderTest& store, std::ostream* out) { *out << store.name; }

class BlobConformance : public testing::TestWithParam<StoreUnderTest> {
 protected:
  void put(const std::string& key, const std::string& text) {
    run_task(loop, store->put(key, blobs::body_of(text)));
  }
  std::string range(const std::string& key, std::uint64_t begin, std::uint64_t size) {
    std::string text;
    const std::function<void(std::string_view)> on_bytes = [&](std::string_view bytes) {
      text += bytes;
    };
    run_task(loop, store->get(key, {begin, size}, on_bytes));
    return text;
  }
  std::string text(const std::string& key) { return run_task(loop, store->get_text(key)); }

  asio::io_context loop;
  std::shared_ptr<void> keeps;
  const settings::RemoteStoreSettings settings = GetParam().make(loop, keeps);
  const std::unique_ptr<blobs::BlobStore> store = blobs::open(loop, settings);
};

TEST_P(BlobConformance, the_address_is_one_that_users_write) {
  EXPECT_EQ(store->url(), settings.url);
  EXPECT_EQ(blobs::read_address(settings.url, "/"), settings.url);
  EXPECT_EQ(blobs::can_presign(settings.url), store->pod_access() != nullptr);
}

TEST_P(BlobConformance, a_probe_leaves_nothing) {
  run_task(loop, store->probe());
  EXPECT_THAT(run_task(loop, store->list("")), testing::IsEmpty());
}

TEST_P(BlobConformance, a_blob_is_read_as_it_was_written_last) {
  EXPECT_FALSE(run_task(loop, store->has("a/b.json")));
  EXPECT_EQ(run_task(loop, store->find_text("a/b.json")), std::nullopt);
  put("a/b.json", "one");
  put("a/b.json", "two");
  EXPECT_TRUE(run_task(loop, store->has("a/b.json")));
  EXPECT_EQ(text("a/b.json"), "two");
  EXPECT_EQ(run_task(loop, store->find_text("a/b.json")), "two");
  put("empty", "");
  EXPECT_EQ(text("empty"), "");
}

TEST_P(BlobConformance, a_range_is_a_part_and_ends_where_the_blob_ends) {
  put("k", "0123456789");
  EXPECT_EQ(range("k", 0, 4), "0123");
  EXPECT_EQ(range("k", 4, 2), "45");
  EXPECT_EQ(range("k", 8, 100), "89");
  EXPECT_EQ(range("k", 3, blobs::unlimited), "3456789");
  EXPECT_EQ(range("k", 3, 0), "");
  EXPECT_EQ(range("k", 10, 5), "");
}

TEST_P(BlobConformance, a_missing_blob_is_told_apart_from_other_failures) {
  for (const bool is_copied : {false, true}) try {
      if (is_copied)
        run_task(loop, store->copy("none", "b"));
      else
        text("none");
      ADD_FAILURE() << "read";
    } catch (const blobs::BlobError& error) {
      EXPECT_EQ(error.kind(), blobs::BlobError::Kind::missing_blob) << error.what();
    }
}

TEST_P(BlobConformance, a_blob_that_was_removed_or_never_written_can_be_removed) {
  put("a/b", "x");
  run_task(loop, store->remove("a/b"));
  run_task(loop, store->remove("a/b"));
  EXPECT_FALSE(run_task(loop, store->has("a/b")));
  put("a/c", "y");
  EXPECT_EQ(text("a/c"), "y");
}

TEST_P(BlobConformance, lists_have_the_keys_below_a_prefix) {
  for (const auto* key : {"runs/a/1", "runs/a/2", "runs/b/c/3", "runs.json", "other/x"})
    put(key, "");
  using testing::UnorderedElementsAre;
  EXPECT_THAT(run_task(loop, store->list("runs/")),
              UnorderedElementsAre("runs/a/1", "runs/a/2", "runs/b/c/3"));
  EXPECT_THAT(run_task(loop, store->list("runs")),
              UnorderedElementsAre("runs/a/1", "runs/a/2", "runs/b/c/3", "runs.json"));
  EXPECT_THAT(run_task(loop, store->list("runs/a/1")), UnorderedElementsAre("runs/a/1"));
  EXPECT_THAT(run_task(loop, store->list("none/")), testing::IsEmpty());
  EXPECT_THAT(run_task(loop, store->folders("runs")), UnorderedElementsAre("a", "b"));
  run_task(loop, store->remove("runs/b/c/3"));
  EXPECT_THAT(run_task(loop, store->folders("runs")), UnorderedElementsAre("a"));
}

TEST_P(BlobConformance, a_copy_stays_when_its_source_changes) {
  put("a", "one");
  run_task(loop, store->copy("a", "deep/er/b"));
  put("a", "two");
  EXPECT_EQ(text("deep/er/b"), "one");
  run_task(loop, store->copy("a", "deep/er/b"));
  EXPECT_EQ(text("deep/er/b"), "two");
}

TEST_P(BlobConformance, a_conditional_write_fails_after_another_write) {
  const auto first = run_task(loop, store->put_if("k", "one", ""));
  ASSERT_TRUE(first);
  const auto found = run_task(loop, store->find_tagged("k"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->text, "one");
  if (!GetParam().has_conditional_writes) {
    EXPECT_TRUE(run_task(loop, store->put_if("k", "two", "another tag")));
    EXPECT_EQ(text("k"), "two");
    return;
  }
  EXPECT_EQ(found->tag, *first);
  EXPECT_FALSE(run_task(loop, store->put_if("k", "mine", "")));
  const auto second = run_task(loop, store->put_if("k", "two", *first));
  ASSERT_TRUE(second);
  EXPECT_FALSE(run_task(loop, store->put_if("k", "mine", *first)));
  EXPECT_EQ(text("k"), "two");
  run_task(loop, store->remove("k"));
  EXPECT_FALSE(run_task(loop, store->put_if("k", "mine", *second)));
  EXPECT_FALSE(run_task(loop, store->has("k")));
}

/// Adds one to the number in a blob `times` times, and repeats writes whose condition fails.
/// @param lost is increased by the number of repeated writes
inline async::Task<> count_up(blobs::BlobStore& store, int times, int& lost) {
  while (times > 0) {
    auto found = co_await store.find_tagged("number");
    if (!found) found = blobs::Tagged{"0", ""};
    auto next = std::to_string(std::stoi(found->text) + 1);
    const auto tag = co_await store.put_if("number", std::move(next), std::move(found->tag));
    if (tag)
      --times;
    else
      ++lost;
  }
}

TEST_P(BlobConformance, one_of_two_conditional_writes_at_once_succeeds) {
  if (!GetParam().has_conditional_writes) return;
  const auto other = blobs::open(loop, settings);
  constexpr int times = 20;
  int lost = 0;
  asio::co_spawn(loop, count_up(*other, times, lost), asio::detached);
  run_task(loop, count_up(*store, times, lost));
  // The other counter may not have finished yet.
  for (int i = 0; i < 100'000 && text("number") != std::to_string(2 * times); ++i) loop.poll();
  EXPECT_EQ(text("number"), std::to_string(2 * times)) << lost << " writes found another one";
}

TEST_P(BlobConformance, large_blobs_and_artifacts_come_back_as_they_were) {
  constexpr std::size_t size = 33u << 20;  // Several parts (blobs/transfer_plan.hpp).
  core::TemporaryFolder folder;
  std::string large(size, 'x');
  large[size / 2] = 'y';
  core::write_file_atomically(folder.path() / "file", large);
  std::filesystem::create_directories(folder.path() / "tree/deep");
  core::write_file_atomically(folder.path() / "tree/deep/a", "one");
  const auto digest_of_tree = [&](const std::string& name) {
    auto nodes = file_tree::scan_tree(folder.path() / name);
    file_tree::hash_tree(folder.path() / name, nodes);
    return file_tree::tree_digest(nodes).hex();
  };
  blobs::RemoteArtifacts artifacts(loop, settings);
  const auto digest = core::sha256(large).hex(), tree_digest = digest_of_tree("tree");
  const auto key = run_task(loop, artifacts.send(digest, folder.path() / "file", nullptr));
  EXPECT_EQ(range(key, size / 2, 1), "y");
  run_task(loop, store->copy(key, "copy", size));
  EXPECT_EQ(core::sha256(text("copy")).hex(), digest);
  using Form = blobs::RemoteArtifacts::Form;
  EXPECT_EQ(run_task(loop, artifacts.receive(key, folder.path() / "back", Form::executable, size,
                                             nullptr)),
            digest);
  EXPECT_TRUE(blobs::is_executable_file(folder.path() / "back"));
  const auto tar = run_task(loop, artifacts.send(tree_digest, folder.path() / "tree", nullptr));
  run_task(loop, artifacts.receive(tar, folder.path() / "tree2", Form::tree, size, nullptr));
  EXPECT_EQ(digest_of_tree("tree2"), tree_digest);
}

TEST_P(BlobConformance, an_upload_in_parts_is_open_until_it_is_aborted) {
  auto* uploads = store->pod_access();
  if (!uploads) return;  // A shared folder has no uploads in parts.
  const auto id = run_task(loop, uploads->begin_upload("deep/large"));
  // The list may be empty: not every server has one.
  for (const auto& upload : run_task(loop, uploads->open_uploads())) {
    EXPECT_EQ(upload.key, "deep/large");
    EXPECT_EQ(upload.id, id);
  }
  run_task(loop, uploads->abort_upload("deep/large", id));
  run_task(loop, uploads->abort_upload("deep/large", id));
  EXPECT_TRUE(run_task(loop, uploads->open_uploads()).empty());
}

TEST_P(BlobConformance, a_text_above_64_mib_is_refused) {
  if (under_tsan) GTEST_SKIP() << "64 MiB take longer than such a request may take";
  put("k", std::string((std::size_t{64} << 20) + 1, ' '));
  for (const bool is_found : {false, true}) try {
      if (is_found)
        run_task(loop, store->find_text("k"));
      else
        text("k");
      ADD_FAILURE() << "read";
    } catch (const core::EnvironmentError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("is larger than 64"));
    }
}

}  // namespace pipeline::test

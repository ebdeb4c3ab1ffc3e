#include "blobs/remote_artifacts.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "blobs/crc64nvme.hpp"
#include "core/file.hpp"
#include "file_tree/tree.hpp"
#include "support/bucket.hpp"
#include "support/run_task.hpp"
#include "support/sanitizers.hpp"
#include "support/tar.hpp"

namespace pipeline::blobs {
namespace {

namespace fs = std::filesystem;

std::string sum_of(std::string_view text) {
  Crc64Nvme sum;
  sum.update(text);
  return sum.base64();
}

using test::run_task;
using testing::ElementsAre;
using Form = RemoteArtifacts::Form;

class ArtifactsInABucket : public test::BucketTest {
 protected:
  std::string digest_of(const fs::path& tree) {
    auto nodes = file_tree::scan_tree(tree);
    file_tree::hash_tree(tree, nodes);
    return file_tree::tree_digest(nodes).hex();
  }

  core::TemporaryFolder folder;
  RemoteArtifacts artifacts{loop, settings()};
};

TEST_F(ArtifactsInABucket, are_uploaded_once_and_downloaded_unchanged) {
  const auto file = folder.path() / "file", tree = folder.path() / "tree";
  core::write_file_atomically(file, "text");
  fs::permissions(file, fs::perms::owner_exec, fs::perm_options::add);
  fs::create_directories(tree / "deep");
  core::write_file_atomically(tree / "deep" / "a", "one");
  fs::create_symlink("deep/a", tree / "link");
  const auto digest = core::sha256("text").hex(), of_tree = digest_of(tree);
  const auto key = run_task(loop, artifacts.send(digest, file, nullptr));
  EXPECT_EQ(key, "artifacts/" + digest.substr(0, 2) + "/" + digest.substr(2));
  run_task(loop, artifacts.send(digest, file, nullptr));
  EXPECT_THAT(server.asked, ElementsAre("HEAD /team/pipe/" + key, "PUT /team/pipe/" + key));
  const auto tar = run_task(loop, artifacts.send(of_tree, tree, nullptr));
  EXPECT_EQ(
      run_task(loop, artifacts.receive(key, folder.path() / "file2",
                                       RemoteArtifacts::form_of(false, is_executable_file(file)), 4,
                                       nullptr)),
      digest);
  EXPECT_EQ(core::read_file(folder.path() / "file2"), "text");
  EXPECT_TRUE(is_executable_file(folder.path() / "file2"));
  run_task(loop, artifacts.receive(tar, folder.path() / "tree2", Form::tree, 3, nullptr));
  EXPECT_EQ(digest_of(folder.path() / "tree2"), of_tree);
}

class DamagedBlob : public ArtifactsInABucket {
 protected:
  DamagedBlob() { core::write_file_atomically(file, "text"); }
  /// The blob is something else, and this process has found that out.
  void damage() {
    blob() = "something else";
    artifacts.invalidate(key);
  }
  void send() { run_task(loop, artifacts.send(digest, file, nullptr)); }
  std::string& blob() { return objects["/team/pipe/" + key]; }

  const fs::path file = folder.path() / "file";
  const std::string digest = core::sha256("text").hex(),
                    key = RemoteArtifacts::key_of(digest, false);
};

TEST_F(DamagedBlob, is_sent_again) {
  damage();
  send();
  EXPECT_EQ(blob(), "text");
  damage();
  send();
  EXPECT_EQ(blob(), "text") << "the blob is sent again, though this process has sent it before";
}

TEST_F(DamagedBlob, is_sent_again_after_a_failed_upload) {
  damage();
  refuses = true;
  EXPECT_THROW(send(), core::EnvironmentError);
  refuses = false;
  send();
  EXPECT_EQ(blob(), "text");
}

TEST_F(ArtifactsInABucket, that_two_users_share_are_looked_up_once) {
  run_task(loop, artifacts.probe());
  const auto asked = server.asked.size();
  EXPECT_GT(asked, 0u);
  run_task(loop, artifacts.probe());
  EXPECT_EQ(server.asked.size(), asked);
}

TEST_F(ArtifactsInABucket, that_two_steps_have_made_equal_are_copied_once) {
  const auto digest = core::sha256("text").hex();
  objects["/team/pipe/outputs/a"] = objects["/team/pipe/outputs/b"] = "text";
  asio::co_spawn(loop, artifacts.adopt("outputs/a", digest, false, 4), asio::detached);
  run_task(loop, artifacts.adopt("outputs/b", digest, false, 4));
  EXPECT_THAT(server.asked,
              ElementsAre("PUT /team/pipe/" + RemoteArtifacts::key_of(digest, false)));
}

TEST_F(ArtifactsInABucket, that_pods_have_sent_are_kept_without_a_download) {
  const auto digest = core::sha256("ab").hex(), to = RemoteArtifacts::key_of(digest, false);
  const std::vector<std::string> sums{"\"0cc175b9c0f1b6a831c399e269772661\"",
                                      "\"92eb5ffee6ae2fec3ad71c777531578f\""};
  objects["/team/pipe/outputs/a"] = "ab";
  RemoteArtifacts::Sent sent{2, {"\"unknown\""}, ""};
  EXPECT_TRUE(run_task(loop, artifacts.keep("outputs/a", digest, false, sent)));
  EXPECT_EQ(objects["/team/pipe/" + to], "ab");
  EXPECT_THAT(server.asked, ElementsAre("HEAD /team/pipe/outputs/a", "HEAD /team/pipe/" + to,
                                        "PUT /team/pipe/" + to, "HEAD /team/pipe/" + to));
  server.asked.clear();
  tags["/team/pipe/outputs/a"] = "\"96e024ba2074fe77e8e965ba43a704be-2\"";
  sent.tags = sums;
  EXPECT_FALSE(run_task(loop, artifacts.keep("outputs/a", digest, false, sent)))
      << "the object may have other content, which only a download shows";
  artifacts.invalidate(to);
  EXPECT_TRUE(run_task(loop, artifacts.keep("outputs/a", digest, false, sent)));
  EXPECT_THAT(server.asked, testing::Not(testing::Contains(testing::StartsWith("GET"))));
}

TEST_F(ArtifactsInABucket, are_kept_by_a_server_that_refuses_to_be_asked_for_checksums) {
  const auto digest = core::sha256("ab").hex(), to = RemoteArtifacts::key_of(digest, false);
  objects["/team/pipe/outputs/a"] = "ab";
  refuses_checksums = true;
  const RemoteArtifacts::Sent sent{2, {"\"unknown\""}, ""};
  EXPECT_TRUE(run_task(loop, artifacts.keep("outputs/a", digest, false, sent)));
  EXPECT_EQ(objects["/team/pipe/" + to], "ab");
  EXPECT_THAT(server.asked, ElementsAre("HEAD /team/pipe/outputs/a", "HEAD /team/pipe/outputs/a",
                                        "HEAD /team/pipe/" + to, "PUT /team/pipe/" + to,
                                        "HEAD /team/pipe/" + to));
}

TEST_F(ArtifactsInABucket, are_not_kept_if_the_servers_checksum_differs) {
  const auto digest = core::sha256("ab").hex();
  const auto kind_of = [&](std::uint64_t bytes, std::vector<std::string> sums,
                           std::string crc = {}) {
    const RemoteArtifacts::Sent sent{bytes, std::move(sums), std::move(crc)};
    try {
      run_task(loop, artifacts.keep("outputs/a", digest, false, sent));
    } catch (const BlobError& error) {
      return error.kind();
    }
    return BlobError::Kind::other;
  };
  EXPECT_EQ(kind_of(2, {}), BlobError::Kind::missing_blob);
  objects["/team/pipe/outputs/a"] = "ab";
  EXPECT_EQ(kind_of(3, {}), BlobError::Kind::damaged_blob);
  tags["/team/pipe/outputs/a"] = "\"96e024ba2074fe77e8e965ba43a704be-2\"";
  EXPECT_EQ(kind_of(2, {"92eb5ffee6ae2fec3ad71c777531578f", "0cc175b9c0f1b6a831c399e269772661"}),
            BlobError::Kind::damaged_blob)
      << "the parts are in another order";
  EXPECT_EQ(kind_of(2, {"0cc175b9c0f1b6a831c399e269772661"}), BlobError::Kind::damaged_blob);
  tags["/team/pipe/outputs/a"] = "\"encrypted\"";
  checksums["/team/pipe/outputs/a"] = sum_of("ax");
  EXPECT_EQ(kind_of(2, {"x"}, sum_of("ab")), BlobError::Kind::damaged_blob);
}

TEST_F(ArtifactsInABucket, are_downloaded_for_comparison_if_only_their_checksums_are_equal) {
  const auto digest = core::sha256("ab").hex(), to = RemoteArtifacts::key_of(digest, false);
  objects["/team/pipe/outputs/a"] = objects["/team/pipe/" + to] = "ab";
  checksums["/team/pipe/outputs/a"] = checksums["/team/pipe/" + to] = sum_of("ab");
  const std::string tag = "\"96e024ba2074fe77e8e965ba43a704be\"";
  tags["/team/pipe/outputs/a"] = tags["/team/pipe/" + to] = tag;
  const RemoteArtifacts::Sent sent{2, {"x"}, sum_of("ab")};
  EXPECT_TRUE(run_task(loop, artifacts.keep("outputs/a", digest, false, sent)));
  tags["/team/pipe/" + to] = "\"encrypted\"";
  EXPECT_FALSE(run_task(loop, artifacts.keep("outputs/a", digest, false, sent)));
  tags["/team/pipe/" + to] = tag;
  checksums["/team/pipe/" + to] = sum_of("ax");
  EXPECT_FALSE(run_task(loop, artifacts.keep("outputs/a", digest, false, sent)));
  checksums["/team/pipe/" + to] = "AAAA";  // moto writes a CRC32 where it knows no CRC64NVME.
  EXPECT_TRUE(run_task(loop, artifacts.keep("outputs/a", digest, false, sent)));
}

TEST_F(ArtifactsInABucket, are_those_of_a_pod_only_if_it_knows_the_sums_of_their_parts) {
  using Presence = RemoteArtifacts::Presence;
  const auto digest = core::sha256("ab").hex(), key = RemoteArtifacts::key_of(digest, false);
  const std::vector<std::string> sums{"\"0cc175b9c0f1b6a831c399e269772661\"",
                                      "\"92eb5ffee6ae2fec3ad71c777531578f\""};
  const auto compared = [&](RemoteArtifacts::Sent sent) {
    return run_task(loop, artifacts.compare(digest, false, std::move(sent)));
  };
  EXPECT_EQ(compared({2, sums, ""}), Presence::absent);
  objects["/team/pipe/" + key] = "ab";
  EXPECT_EQ(compared({2, sums, ""}), Presence::unknown) << "the tag says nothing of its parts";
  tags["/team/pipe/" + key] = "\"96e024ba2074fe77e8e965ba43a704be-2\"";
  EXPECT_EQ(compared({2, sums, ""}), Presence::same);
  EXPECT_EQ(compared({2, {sums[1], sums[0]}, ""}), Presence::unknown);
  EXPECT_EQ(compared({2, {"\"x\"", "\"y\""}, ""}), Presence::unknown);
  EXPECT_EQ(compared({2, {}, ""}), Presence::unknown);
  EXPECT_EQ(compared({3, sums, ""}), Presence::unknown);
  checksums["/team/pipe/" + key] = sum_of("ax");
  EXPECT_EQ(compared({2, sums, sum_of("ab")}), Presence::unknown);
  artifacts.invalidate(key);
  EXPECT_EQ(compared({2, sums, ""}), Presence::absent) << "the object is to be replaced";
}

TEST_F(ArtifactsInABucket, that_a_pod_writes_itself_are_there_once_their_upload_is_completed) {
  const auto digest = core::sha256("ab").hex(), key = RemoteArtifacts::key_of(digest, false);
  RemoteArtifacts::Sent sent{2, {"\"x\"", "\"y\""}, ""};
  const auto id = run_task(loop, artifacts.begin_upload(digest, false));
  EXPECT_EQ(id, "1");
  EXPECT_EQ(run_task(loop, artifacts.begin_upload(digest, false)), "") << "another pod writes it";
  parts = {{1, "a"}, {2, "b"}};
  EXPECT_FALSE(objects.contains("/team/pipe/" + key));
  run_task(loop, artifacts.complete_upload(id, digest, false, sent));
  EXPECT_EQ(objects["/team/pipe/" + key], "ab");
  server.asked.clear();
  EXPECT_TRUE(run_task(loop, artifacts.has(key)));
  EXPECT_THAT(server.asked, testing::IsEmpty());
  sent.bytes = 3;
  EXPECT_THROW(run_task(loop, artifacts.complete_upload(id, digest, false, sent)), BlobError);
  EXPECT_FALSE(run_task(loop, artifacts.has(key))) << "whoever sends it next replaces it";
  EXPECT_EQ(run_task(loop, artifacts.begin_upload(digest, false)), "1");
  run_task(loop, artifacts.abort_upload(key, "1"));
  EXPECT_THAT(server.asked, testing::Contains("DELETE /team/pipe/" + key + "?uploadId=1"));
  EXPECT_EQ(run_task(loop, artifacts.begin_upload(digest, false)), "1");
}

TEST(Crc64Nvme, is_that_of_the_catalogue_for_pieces_of_any_size) {
  EXPECT_EQ(sum_of("123456789"), "rosUhgp5mIg=");  // 0xAE8B14860A799888
  const std::string text(1000, 'x');
  Crc64Nvme sum;
  for (std::size_t i = 0, size = 1; i < text.size(); i += size++)
    sum.update(std::string_view(text).substr(i, size));
  EXPECT_EQ(sum.base64(), sum_of(text));
}

TEST_F(ArtifactsInABucket, that_are_larger_than_announced_are_refused) {
  objects["/team/pipe/file"] = "12345";
  EXPECT_THROW(
      run_task(loop, artifacts.receive("file", folder.path() / "a", Form::file, 4, nullptr)),
      UnusableBlob);
  EXPECT_EQ(run_task(loop, artifacts.receive("file", folder.path() / "b", Form::file, 5, nullptr)),
            core::sha256("12345").hex());
  objects["/team/pipe/tree.tar"] =
      test::tar::entry('0', "./a", "123") + test::tar::entry('0', "./b", "45") + test::tar::end;
  EXPECT_THROW(
      run_task(loop, artifacts.receive("tree.tar", folder.path() / "c", Form::tree, 4, nullptr)),
      UnusableBlob);
  run_task(loop, artifacts.receive("tree.tar", folder.path() / "d", Form::tree, 5, nullptr));
  EXPECT_EQ(core::read_file(folder.path() / "d/b"), "45");
}

TEST_F(ArtifactsInABucket, that_would_be_unpacked_outside_of_their_folder_are_refused) {
  fs::create_directory(folder.path() / "victim");
  for (const char* way : {"../victim", "../../victim"}) {
    objects["/team/pipe/x.tar"] = test::tar::entry('2', "./a", "", way) +
                                  test::tar::entry('2', "./a/x", "", "code") + test::tar::end;
    EXPECT_THROW(
        run_task(loop, artifacts.receive("x.tar", folder.path() / "to", Form::tree, 1000, nullptr)),
        UnusableBlob);
  }
  EXPECT_TRUE(fs::is_empty(folder.path() / "victim"));
}

TEST_F(ArtifactsInABucket, are_not_read_into_memory_beyond_a_limit) {
  if (test::under_tsan) GTEST_SKIP() << "64 MiB take longer than such a request may take";
  objects["/team/pipe/report.json"] = std::string((std::size_t{64} << 20) + 1, ' ');
  for (const bool is_found : {false, true}) try {
      if (is_found)
        run_task(loop, artifacts.store().find_text("report.json"));
      else
        run_task(loop, artifacts.store().get_text("report.json"));
      FAIL();
    } catch (const core::EnvironmentError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("is larger than 64"));
    }
}

TEST_F(ArtifactsInABucket, that_are_not_folders_are_refused_as_folders) {
  objects["/team/pipe/x.tar"] = "no tar at all, but a text " + std::string(600, 'x');
  EXPECT_THROW(
      run_task(loop, artifacts.receive("x.tar", folder.path() / "x", Form::tree, 1000, nullptr)),
      UnusableBlob);
  objects["/team/pipe/x.tar"] = "";
  EXPECT_THROW(
      run_task(loop, artifacts.receive("x.tar", folder.path() / "y", Form::tree, 1000, nullptr)),
      UnusableBlob);
}

}  // namespace
}  // namespace pipeline::blobs

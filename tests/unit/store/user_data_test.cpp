#include "store/user_data.hpp"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::store {
namespace {

namespace fs = std::filesystem;

class UserDataTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    core::make_folders((root / name).parent_path());
    core::write_file_atomically(root / name, text);
  }
  UserData read() { return read_user_data(root, index); }

  core::TemporaryFolder folder;
  fs::path root = folder.path() / "corpus";
  StatIndex index{folder.path() / "stat-index"};
  ArtifactStore artifacts{folder.path() / "artifacts"};
};

TEST_F(UserDataTest, unreadable_files_and_links_that_lead_out_are_errors) {
  EXPECT_THROW(read(), core::EnvironmentError);
  EXPECT_THROW(stamp_of(root), core::EnvironmentError);
  write("a", "a");
  fs::create_symlink("/etc/passwd", root / "out");
  EXPECT_THROW(read(), core::EnvironmentError);
}

TEST_F(UserDataTest, a_folder_has_the_digest_of_the_artifact_that_it_would_be) {
  write("a.txt", "a");
  write("deep/b.txt", "b");
  fs::create_directory(root / "empty");
  fs::create_symlink("a.txt", root / "link");
  const auto data = read();
  EXPECT_TRUE(data.is_directory);
  ASSERT_EQ(data.parts.size(), 5u);
  EXPECT_EQ(data.parts[0].first, "a.txt");
  const auto stored = store_user_data(root, artifacts, folder.path() / "artifacts" / "copy");
  EXPECT_EQ(stored.digest, data.digest);
  EXPECT_EQ(core::read_file(root / "deep/b.txt"), "b") << "the user's folder stays";
}

TEST_F(UserDataTest, a_file_has_the_digest_of_its_content) {
  write("a.txt", "a");
  core::make_folders(folder.path() / "artifacts");
  const auto data = read_user_data(root / "a.txt", index);
  EXPECT_FALSE(data.is_directory);
  EXPECT_EQ(data.digest, core::sha256("a"));
  EXPECT_FALSE(data.is_executable);
  EXPECT_EQ(store_user_data(root / "a.txt", artifacts, folder.path() / "artifacts" / "copy").digest,
            data.digest);
}

TEST_F(UserDataTest, a_file_that_its_owner_may_execute_is_executable) {
  write("tool", "#!/bin/sh");
  const auto before = read_user_data(root / "tool", index);
  fs::permissions(root / "tool", fs::perms::owner_exec, fs::perm_options::add);
  const auto after = read_user_data(root / "tool", index);
  EXPECT_FALSE(before.is_executable);
  EXPECT_TRUE(after.is_executable);
  EXPECT_EQ(after.digest, before.digest);
  EXPECT_NE(after.stamp, before.stamp);
}

TEST_F(UserDataTest, every_change_changes_the_stamp) {
  write("a.txt", "a");
  write("b.txt", "b");
  std::vector<std::string> stamps{read().stamp};
  EXPECT_EQ(stamp_of(root), stamps[0]);
  const auto changes = [&](const char* what) {
    stamps.push_back(stamp_of(root));
    EXPECT_NE(stamps.back(), stamps[stamps.size() - 2]) << what;
  };
  write("a.txt", "longer");
  changes("content");
  fs::rename(root / "a.txt", root / "c.txt");
  changes("name");
  fs::remove(root / "b.txt");
  changes("removal");
  fs::create_directory(root / "d");
  changes("folder");
}

TEST_F(UserDataTest, a_file_that_was_there_only_meanwhile_changes_the_stamp) {
  write("a.txt", "a");
  write("d/b.txt", "b");
  for (const auto* added : {"part.txt", "d/part.txt"}) {
    const auto before = read();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // Times of files have ticks.
    write(added, "part");
    fs::remove(root / added);
    EXPECT_EQ(read().digest, before.digest) << added;
    EXPECT_NE(stamp_of(root), before.stamp) << added;
  }
}

TEST_F(UserDataTest, a_large_folder_has_a_part_for_each_of_its_folders) {
  for (int i = 0; i < 300; ++i) write("many/" + std::to_string(i), "x");
  write("top.txt", "t");
  const auto before = read();
  ASSERT_EQ(before.parts.size(), 2u);
  EXPECT_EQ(before.parts[0].first, ".");
  EXPECT_EQ(before.parts[1].first, "many/");
  write("many/7", "changed");
  const auto after = read();
  EXPECT_EQ(after.parts[0], before.parts[0]);
  EXPECT_NE(after.parts[1], before.parts[1]);
}

}  // namespace
}  // namespace pipeline::store

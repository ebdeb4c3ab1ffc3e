#include "engine/attempt/work_folders.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include <sys/stat.h>

#include "core/file.hpp"

namespace pipeline::engine {
namespace {

namespace fs = std::filesystem;

class WorkFoldersTest : public testing::Test {
 protected:
  static ino_t identity(const fs::path& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
  }
  /// Every path in the folder of an attempt.
  static std::set<std::string> content(const fs::path& folder) {
    std::set<std::string> paths;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      paths.insert(entry.path().lexically_relative(folder).string());
    return paths;
  }
  std::string end(const fs::path& folder, bool succeeded = true) {
    folders.give_back(folder, orchestrator, succeeded);
    return folder.string();
  }

  const std::set<std::string> fresh{"outputs", "scratch"};
  core::TemporaryFolder root;
  orchestrators::Capabilities orchestrator{.name = "here", .scratch_folders = {"code"}};
  WorkFolders folders{root.path() / "run"};
};

TEST_F(WorkFoldersTest, a_folder_with_only_files_of_an_earlier_attempt_is_reused) {
  const auto first = folders.take("a.1", orchestrator);
  EXPECT_EQ(content(first), fresh);
  const auto folder = identity(first);
  fs::create_directory(first / "scratch/code");
  for (const auto* name : {"outputs/rest", "scratch/log", "scratch/code/script"})
    core::write_file_atomically(first / name, "text");
  end(first);

  const auto second = folders.take("b.1", orchestrator);
  EXPECT_EQ(second, root.path() / "run/b.1");
  EXPECT_EQ(identity(second), folder);
  EXPECT_FALSE(fs::exists(first));
  EXPECT_EQ(content(second), (std::set<std::string>{"outputs", "scratch", "scratch/code"}));
}

TEST_F(WorkFoldersTest, two_attempts_at_a_time_have_two_folders) {
  end(folders.take("a.1", orchestrator));
  EXPECT_NE(identity(folders.take("b.1", orchestrator)),
            identity(folders.take("c.1", orchestrator)));
}

TEST_F(WorkFoldersTest, a_folder_is_removed_unless_it_can_be_reused) {
  const auto is_removed = [&](auto change, bool succeeded = true) {
    const auto folder = folders.take("a.1", orchestrator);
    change(folder);
    return !fs::exists(end(folder, succeeded));
  };
  const auto with_folder = [](const fs::path& folder) {
    fs::create_directory(folder / "scratch/own");
  };
  const auto opened = [](const fs::path& folder) { ::chmod((folder / "outputs").c_str(), 0777); };
  const auto linked = [&](const fs::path& folder) {
    fs::remove(folder / "scratch");
    fs::create_directory_symlink(root.path(), folder / "scratch");
  };
  const auto as_it_was = [](const fs::path&) {};
  EXPECT_TRUE(is_removed(with_folder));
  EXPECT_TRUE(is_removed(opened));
  EXPECT_TRUE(is_removed(linked));
  EXPECT_TRUE(is_removed(as_it_was, false)) << "the attempt failed";
  orchestrator.outlives_driver = true;
  EXPECT_TRUE(is_removed(as_it_was)) << "another driver may join the attempt";
}

TEST_F(WorkFoldersTest, folders_of_an_earlier_driver_are_removed_unless_the_attempt_is_joined) {
  const auto left = root.path() / "run/a.1/outputs/file";
  core::make_folders(left.parent_path());
  core::write_file_atomically(left, "text");
  folders.join("a.1");
  EXPECT_TRUE(fs::exists(left));
  end(folders.take("b.1", orchestrator));
  EXPECT_EQ(content(folders.take("a.1", orchestrator)), fresh)
      << "also when a spare folder takes its place";
}

TEST_F(WorkFoldersTest, another_orchestrator_is_given_folders_of_its_own) {
  const auto first = folders.take("a.1", orchestrator);
  fs::create_directory(first / "scratch/code");
  end(first);
  const orchestrators::Capabilities other{.name = "there"};
  EXPECT_EQ(content(folders.take("b.1", other)), fresh);
}

}  // namespace
}  // namespace pipeline::engine

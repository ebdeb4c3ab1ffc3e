#include "core/empty_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "core/file.hpp"

namespace pipeline::core {
namespace {

namespace fs = std::filesystem;

constexpr mode_t mode = 0750;

class EmptyFolder : public testing::Test {
 protected:
  EmptyFolder() {
    ::mkdir(folder.c_str(), 0700);
    ::chmod(folder.c_str(), mode);
  }
  void add_file(const std::string& name) { write_file_atomically(folder / name, "text"); }

  const TemporaryFolder parent;
  const fs::path folder = parent.path() / "folder";
};

TEST_F(EmptyFolder, loses_its_files_and_links_and_keeps_its_mode) {
  add_file("a");
  write_file_atomically(parent.path() / "beside", "text");
  fs::create_symlink(parent.path() / "beside", folder / "link");
  fs::create_directory_symlink(parent.path(), folder / "out");
  for (const auto permissions : {mode, mode_t{0555}}) {
    ::chmod(folder.c_str(), permissions);
    EXPECT_TRUE(empty_folder(folder, mode));
    EXPECT_TRUE(fs::is_empty(folder));
    struct stat status {};
    ASSERT_EQ(::stat(folder.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, permissions);
    ::chmod(folder.c_str(), mode);
    add_file("b");
  }
  EXPECT_TRUE(fs::exists(parent.path() / "beside")) << "links are removed, not followed";
}

TEST_F(EmptyFolder, keeps_folders_of_these_names_and_is_refused_with_others) {
  fs::create_directory(folder / "kept");
  EXPECT_TRUE(empty_folder(folder, mode, std::vector<std::string>{"kept", "missing"}));
  EXPECT_TRUE(fs::exists(folder / "kept"));
  EXPECT_FALSE(empty_folder(folder, mode));
}

TEST_F(EmptyFolder, is_refused_once_it_was_changed) {
  ::chmod(folder.c_str(), 0777);
  EXPECT_FALSE(empty_folder(folder, mode)) << "another mode";
  fs::remove(folder);
  EXPECT_FALSE(empty_folder(folder, mode)) << "missing";
  fs::create_directory(parent.path() / "other");
  ::chmod((parent.path() / "other").c_str(), mode);
  fs::create_directory_symlink(parent.path() / "other", folder);
  EXPECT_FALSE(empty_folder(folder, mode)) << "a link";
}

}  // namespace
}  // namespace pipeline::core

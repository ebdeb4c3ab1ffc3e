/// @file
/// An artifact store in a folder of its own, and files for it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.hpp"
#include "store/artifact_store.hpp"

namespace pipeline::store {

namespace fs = std::filesystem;

class ArtifactStoreTest : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) {
    const auto path = folder.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }
  /// A folder with files, an empty folder, an executable and links.
  fs::path write_tree(const std::string& name) {
    write(name + "/a.txt", "alpha");
    write(name + "/sub/b.txt", "beta");
    write(name + "/sub-more/c", "gamma");
    fs::create_directories(folder.path() / name / "empty");
    fs::permissions(folder.path() / name / "sub/b.txt", fs::perms(0755));
    fs::create_symlink("sub/b.txt", folder.path() / name / "link");
    fs::create_symlink("../a.txt", folder.path() / name / "sub/up");
    return folder.path() / name;
  }
  static mode_t mode(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }
  std::size_t leftovers() const {
    std::error_code error;
    return static_cast<std::size_t>(std::distance(
        fs::directory_iterator(folder.path() / "store/tmp", error), fs::directory_iterator()));
  }
  fs::path write_sparse(const std::string& name, std::uintmax_t bytes) {
    const auto path = write(name, "begins");
    fs::resize_file(path, bytes);
    return path;
  }
  /// Runs in a child process of an unprivileged user, because root may do everything.
  static int as_nobody(const std::function<int()>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(99);
      int result = 98;
      try {
        result = work();
      } catch (const std::exception&) {
      }
      ::_exit(result);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 97;
  }

  core::TemporaryFolder folder;
  ArtifactStore store{folder.path() / "store"};
};

}  // namespace pipeline::store

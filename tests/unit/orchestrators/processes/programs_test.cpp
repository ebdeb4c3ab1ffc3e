#include "orchestrators/processes/programs.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "core/file.hpp"

namespace pipeline::orchestrators::processes {
namespace {

namespace fs = std::filesystem;

/// A folder of pyenv with a shim and one Python. $PYENV_VERSION is unset while it exists.
class Pyenv : public testing::Test {
 protected:
  Pyenv() {
    if (const char* value = std::getenv("PYENV_VERSION")) before_ = value;
    unsetenv("PYENV_VERSION");
    make_program(root() / "shims/python3");
    make_program(bin() / "python3.11");
    fs::create_symlink("python3.11", bin() / "python3");
  }
  ~Pyenv() override {
    if (before_) setenv("PYENV_VERSION", before_->c_str(), 1);
  }
  static void make_program(const fs::path& file) {
    fs::create_directories(file.parent_path());
    core::write_file_atomically(file, "#!/bin/sh\n");
    fs::permissions(file, fs::perms::owner_all);
  }
  const fs::path& root() const { return folder_.path(); }
  fs::path bin() const { return root() / "versions/3.11.7/bin"; }
  FoundProgram find(const std::string& path) const {
    return Programs(path, root() / "project").find("python3");
  }

 private:
  core::TemporaryFolder folder_;
  std::optional<std::string> before_;
};

TEST_F(Pyenv, a_shim_is_the_python_that_it_starts) {
  core::write_file_atomically(root() / "version", "3.11.7\n");
  const auto shims = (root() / "shims").string();
  const auto by_shim = find(shims);
  EXPECT_EQ(by_shim.file, bin() / "python3");
  EXPECT_EQ(by_shim.version, "3.11.7");
  const auto within = find(bin().string() + ":" + shims);  // The PATH of a Python of pyenv's.
  EXPECT_EQ(by_shim.identity, within.identity);
  EXPECT_EQ(by_shim.version, within.version);
}

TEST_F(Pyenv, a_shim_whose_choice_is_elsewhere_is_known_by_the_choice) {
  core::write_file_atomically(root() / "version", "3.12.1\n");
  const auto shims = (root() / "shims").string();
  const auto found = find(shims);
  EXPECT_EQ(found.file, root() / "shims/python3");
  EXPECT_EQ(found.version, "3.12.1");
  EXPECT_TRUE(found.identity.ends_with(" pyenv 3.12.1")) << found.identity;
  core::write_file_atomically(root() / "version", "system\n");
  EXPECT_NE(find(shims).identity, found.identity);
}

}  // namespace
}  // namespace pipeline::orchestrators::processes

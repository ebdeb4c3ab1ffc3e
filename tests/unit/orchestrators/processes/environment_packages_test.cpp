// Changes of a new virtual environment, compared with those that this machine has.
#include <gtest/gtest.h>

#include "core/file.hpp"
#include "orchestrators/processes/environment_packages.hpp"

namespace pipeline::orchestrators::processes {
namespace {

lockfile::LockedPackage package_of(const std::string& name, const std::string& version) {
  lockfile::LockedPackage package;
  package.name = name;
  package.version = version;
  package.sha256 = name + version;
  package.size = 1024;
  return package;
}

lockfile::LockedEnvironment environment_of(std::vector<lockfile::LockedPackage> packages) {
  lockfile::LockedEnvironment environment;
  environment.packages = std::move(packages);
  return environment;
}

struct EnvironmentPackages : testing::Test {
  core::TemporaryFolder folder;
  void make(const std::string& name, std::vector<lockfile::LockedPackage> packages) {
    core::make_folders(folder.path() / name);
    write_packages(folder.path() / name, environment_of(std::move(packages)));
  }
  std::string describe(std::vector<lockfile::LockedPackage> packages) {
    return describe_new_environment(folder.path(), environment_of(std::move(packages)));
  }
};

TEST_F(EnvironmentPackages, of_the_first_environment_are_new) {
  EXPECT_EQ(describe({package_of("a", "1"), package_of("b", "1")}),
            "2 packages; 2 KiB to download");
}

TEST_F(EnvironmentPackages, are_compared_with_the_environment_that_shares_most) {
  make("small", {package_of("a", "1")});
  make("large", {package_of("a", "1"), package_of("b", "1"), package_of("c", "1")});
  make("other", {package_of("x", "1")});
  EXPECT_EQ(describe({package_of("a", "1"), package_of("b", "2"), package_of("d", "1")}),
            "added b 2, d 1; 2 KiB to download");
  EXPECT_EQ(describe({package_of("a", "1"), package_of("b", "1"), package_of("c", "2")}),
            "changed c 1 -> 2; 1 KiB to download");
  EXPECT_EQ(describe({package_of("b", "1"), package_of("c", "1"), package_of("x", "1")}),
            "added x 1, removed a 1")
      << "x is in the cache";
}

TEST_F(EnvironmentPackages, are_not_compared_with_an_environment_that_shares_little) {
  make("other", {package_of("a", "1"), package_of("b", "1"), package_of("c", "1")});
  EXPECT_EQ(describe({package_of("a", "1"), package_of("x", "1")}),
            "2 packages; 1 KiB to download");
}

TEST_F(EnvironmentPackages, of_folders_that_other_programs_left_are_passed_over) {
  core::make_folders(folder.path() / "unlocked");
  core::make_folders(folder.path() / "damaged");
  core::write_file_atomically(folder.path() / "damaged" / ".packages", "[[{");
  EXPECT_EQ(describe({package_of("a", "1")}), "1 package; 1 KiB to download");
}

}  // namespace
}  // namespace pipeline::orchestrators::processes

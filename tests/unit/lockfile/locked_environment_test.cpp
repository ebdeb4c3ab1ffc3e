#include "lockfile/locked_environment.hpp"

#include <gtest/gtest.h>

namespace {

using pipeline::lockfile::LockedEnvironment;
using pipeline::lockfile::LockedPackage;
using pipeline::lockfile::PackageOrigin;

LockedEnvironment example() {
  LockedEnvironment environment;
  environment.tag = "cp311";
  environment.platform = "manylinux_2_36_x86_64";
  environment.packages.push_back({"idna",
                                  "3.7",
                                  "idna-3.7-py3-none-any.whl",
                                  66836,
                                  PackageOrigin::index,
                                  std::string(64, 'a'),
                                  "https://host/idna-3.7-py3-none-any.whl",
                                  {"requests"}});
  return environment;
}

TEST(LockedEnvironment, names_are_normalised_by_pep_503) {
  EXPECT_EQ(pipeline::lockfile::normalised_name("Zope.Interface"), "zope-interface");
  EXPECT_EQ(pipeline::lockfile::normalised_name("a_-.b"), "a-b");
}

TEST(LockedEnvironment, digest_depends_on_installed_packages_and_not_on_requirements) {
  const auto first = example();
  auto second = example();
  second.requirements = {"requests"};
  second.packages[0].url = "https://mirror/idna-3.7-py3-none-any.whl";
  EXPECT_EQ(digest(first), digest(second));
  second.packages[0].sha256 = std::string(64, 'b');
  EXPECT_NE(digest(first), digest(second));
  second = example();
  second.tag = "cp312";
  EXPECT_NE(digest(first), digest(second));
}

TEST(LockedEnvironment, packages_without_a_hash_differ_by_their_commit) {
  auto first = example();
  first.packages[0].sha256.clear();
  auto second = first;
  second.packages[0].url += "@1";
  EXPECT_NE(digest(first), digest(second));
}

TEST(LockedEnvironment, packages_without_a_wheel_are_named_as_built_from_source) {
  auto environment = example();
  EXPECT_EQ(notice_of_sources(environment), "");
  auto& package = environment.packages[0];
  for (const auto* file : {"idna-3.7.tar.gz", ""}) {
    package.file = file;
    EXPECT_EQ(
        notice_of_sources(environment),
        "the lock pins the source of idna 3.7, but not the build's own requirements, which are "
        "chosen when it is built");
  }
}

TEST(LockedEnvironment, members_that_no_lock_file_can_have_are_faults) {
  const auto faults = [](auto change) {
    auto package = example().packages[0];
    change(package);
    std::string keys;
    for (const auto& fault : faults_of(package)) keys += std::string(fault.key) + " ";
    return keys;
  };
  EXPECT_EQ(faults([](LockedPackage&) {}), "");
  EXPECT_EQ(faults([](LockedPackage& p) { p.name = "../a"; }), "name ");
  EXPECT_EQ(faults([](LockedPackage& p) { p.version = "1 --hash"; }), "version ");
  EXPECT_EQ(faults([](LockedPackage& p) { p.file = "a\n.whl"; }), "file ");
  EXPECT_EQ(faults([](LockedPackage& p) { p.sha256 = "\x1b[2J"; }), "sha256 ");
  EXPECT_EQ(faults([](LockedPackage& p) { p.url = "https://host/a b"; }), "url ");
  EXPECT_EQ(faults([](LockedPackage& p) { p.sha256 = p.url = ""; }), "");
}

TEST(LockedEnvironment, install_lines_name_each_origin_as_installers_do) {
  auto environment = example();
  const std::string hash = " --hash=sha256:" + std::string(64, 'a');
  auto& package = environment.packages[0];
  EXPECT_EQ(install_lines(environment)[0], "idna==3.7" + hash);
  package.origin = PackageOrigin::url;
  EXPECT_EQ(install_lines(environment)[0], "idna @ https://host/idna-3.7-py3-none-any.whl" + hash);
  package.origin = PackageOrigin::repository;
  package.url = "git+https://host/idna@0123";
  package.sha256.clear();
  EXPECT_EQ(install_lines(environment)[0], "idna @ git+https://host/idna@0123");
  package.origin = PackageOrigin::path;
  package.url = "./wheels/idna";
  EXPECT_EQ(install_lines(environment)[0], "./wheels/idna");
}

}  // namespace

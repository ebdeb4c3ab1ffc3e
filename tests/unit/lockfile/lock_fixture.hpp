/// @file
/// Environments for tests of a lock file.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/file.hpp"
#include "lockfile/lock_file.hpp"

namespace pipeline::lockfile {

inline LockedPackage package(const std::string& name, const std::string& version) {
  LockedPackage made;
  made.name = name;
  made.version = version;
  made.file = name + "-" + version + "-py3-none-any.whl";
  made.sha256 = std::string(64, version.back());
  return made;
}

inline LockedEnvironment environment_of(std::vector<LockedPackage> packages) {
  LockedEnvironment environment;
  environment.python = "3.11.2";
  environment.tag = "cp311";
  environment.platform = "manylinux_2_36_x86_64";
  environment.packages = std::move(packages);
  return environment;
}

inline LockRequest of_image(std::vector<std::string> requirements,
                            const std::string& digest = "aa") {
  return {"python:3.11", digest, "", "", "uv", std::move(requirements)};
}

inline LockRequest of_machine(std::vector<std::string> requirements, const std::string& platform) {
  return {"local", "", "cp311", platform, "uv", std::move(requirements)};
}

class Locks : public testing::Test {
 protected:
  std::string text() const { return core::read_file(file); }
  core::TemporaryFolder folder;
  std::filesystem::path file = folder.path() / "pipeline.lock";
};

}  // namespace pipeline::lockfile

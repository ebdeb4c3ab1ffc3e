#include "orchestrators/docker/open_folders.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "core/error.hpp"
#include "store/state_lock.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0)
    throw core::system_error("cannot look at " + folder.string(), errno);
  return status.st_mode & 07777;
}

/// A group whose members may write, as where users share a state folder, keeps its rights.
mode_t without_others(mode_t mode) {
  return mode & ~static_cast<mode_t>(S_IRWXO | (mode & S_IWGRP ? 0 : S_IRWXG));
}

}  // namespace

OpenFolders::OpenFolders(const std::vector<fs::path>& folders) {
  for (const auto& folder : folders) {
    if (folder.empty()) continue;
    // The folder of checkpoints may belong to another user who shares the state, and stays as it
    // is. On a network file system, the engine itself may count as another user (root_squash).
    const auto above = folder.parent_path();
    if (store::is_local_file_system(above)) ::chmod(above.c_str(), without_others(mode_of(above)));
    before_.emplace_back(folder, mode_of(folder));
    if (::chmod(folder.c_str(), S_IRWXU | S_IRWXG | S_IRWXO) != 0)
      throw core::system_error("cannot open " + folder.string() + " to the step's user", errno);
  }
}

OpenFolders::~OpenFolders() {
  for (const auto& [folder, mode] : before_) ::chmod(folder.c_str(), mode);
}

}  // namespace pipeline::orchestrators::docker_engine

/// @file
/// Lets a container's user, whom this machine does not know, write to folders of an attempt.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <utility>
#include <vector>

namespace pipeline::orchestrators::docker_engine {

/// Opens folders to all users until this object is destroyed. Their parent folders are closed to
/// users who may not write there (store/private_folder.hpp), so that other users of this machine
/// cannot reach the open folders. A container reaches its mounts all the same.
class OpenFolders {
 public:
  /// Empty paths are left out. Throws EnvironmentError.
  explicit OpenFolders(const std::vector<std::filesystem::path>& folders);
  ~OpenFolders();
  OpenFolders(const OpenFolders&) = delete;
  OpenFolders& operator=(const OpenFolders&) = delete;

 private:
  std::vector<std::pair<std::filesystem::path, mode_t>> before_;
};

}  // namespace pipeline::orchestrators::docker_engine

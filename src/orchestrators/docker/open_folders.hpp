/// @file
/// Folders of an attempt that a user of the image writes to, whom this machine does not know.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <utility>
#include <vector>

namespace pipeline::orchestrators::docker_engine {

/// Opens folders to all users, until its destruction, and closes the folders that they lie in to
/// those users of this machine who cannot write there anyway: what is mounted into a container can
/// be reached in it whatever leads there outside of it. On a network file system nothing is closed.
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

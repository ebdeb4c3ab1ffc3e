/// @file
/// Writes artifacts to the disk before anything names them. A power failure may lose the latest
/// artifacts, but leaves none that has the right name, size and time, and wrong content.
#pragma once

#include <filesystem>
#include <thread>
#include <vector>

#include "file_tree/tree.hpp"

namespace pipeline::store {

/// Waits until the folder with all of its contents is on the disk.
/// @param nodes its contents, sorted by path
void sync_contents(const std::filesystem::path& root,
                   const std::vector<file_tree::TreeNode>& nodes);

/// Writes large files to the disk while the caller computes their digests, so that waiting for the
/// disk afterwards takes less time. Small files, and files that cannot be read, are left out.
class EarlyWriting {
 public:
  explicit EarlyWriting(const std::filesystem::path& file);
  EarlyWriting(const std::filesystem::path& root, const std::vector<file_tree::TreeNode>& nodes);

 private:
  explicit EarlyWriting(std::vector<std::filesystem::path> files);

  std::jthread thread_;  ///< Joined at destruction; not running without large files.
};

}  // namespace pipeline::store

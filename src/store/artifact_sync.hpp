/// @file
/// Artifacts on the disk before anything names them: a power failure may lose the last of them, but
/// leaves none that has its name, size and time, and other content.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "file_tree/tree.hpp"

namespace pipeline::store {

/// Waits until the folder with all of its contents is on the disk.
/// @param nodes its contents, sorted by path
void sync_contents(const std::filesystem::path& root,
                   const std::vector<file_tree::TreeNode>& nodes);

}  // namespace pipeline::store

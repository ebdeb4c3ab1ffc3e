/// @file
/// The nodes of a folder that is put together from files of other folders.
#pragma once

#include <span>
#include <vector>

#include "file_tree/tree.hpp"
#include "store/artifact_store.hpp"

namespace pipeline::store {

/// Returns the entries and their parent folders, sorted, with each file's digest and executable bit
/// from its source. Throws EnvironmentError for a path that leads out of the folder, two files of
/// one path, and what cannot be read or is not a file.
std::vector<file_tree::TreeNode> nodes_of(std::span<const TreeEntry> entries, StatIndex& index);

}  // namespace pipeline::store

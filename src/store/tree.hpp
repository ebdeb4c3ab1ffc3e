/// @file
/// Folders as values: what is in them, its digest, and copies of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/digest.hpp"

namespace pipeline::store {

/// One thing in a folder.
struct TreeNode {
  enum class Kind : char { file = 'f', directory = 'd', link = 'l' };
  std::string path;  ///< Relative to the folder, with `/`.
  Kind kind = Kind::file;
  bool executable = false;
  core::Digest digest;  ///< Of a file; filled by whoever reads it.
  std::string target;   ///< Of a link, as it stands.
  std::uint64_t bytes = 0;
};

/// All that is below `root`, sorted by path. Throws EnvironmentError for what a store cannot keep:
/// links that leave the folder, whatever their way, sockets, pipes, devices; and for what cannot be
/// read.
std::vector<TreeNode> scan_tree(const std::filesystem::path& root);

/// The digest of a folder with these contents, sorted by path. Never that of a file, whatever is in
/// the file.
core::Digest tree_digest(const std::vector<TreeNode>& nodes);

/// Reads every file below `root` and fills its digest.
void hash_tree(const std::filesystem::path& root, std::vector<TreeNode>& nodes);

/// Copies the nodes from `root` into the empty folder `target` and fills their digests with those
/// of what was copied.
void copy_tree(const std::filesystem::path& root, std::vector<TreeNode>& nodes,
               const std::filesystem::path& target);

/// Copies a file, which must not be there yet; the digest of what was copied. @param mode of the
/// new file, less the umask
core::Digest copy_file(const std::filesystem::path& source, const std::filesystem::path& target,
                       unsigned mode, std::uint64_t* bytes = nullptr);

}  // namespace pipeline::store

/// @file
/// Folders as values: what is in them, its digest, and copies of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/digest.hpp"

struct stat;

namespace pipeline::archive {

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

/// The most that files of one output may have of holes, the parts of a sparse file that were never
/// written. They cost nothing to make, and as much to read as anything else; a file without holes
/// took as long to write as it takes to read, and may be of any size.
inline constexpr std::uint64_t most_holes = std::uint64_t{64} << 30;

/// The bytes of a file that are holes, as far as its file system knows of them. Throws
/// EnvironmentError if it cannot be read.
std::uint64_t holes_in(const std::filesystem::path& file, const struct stat& status);
/// Throws EnvironmentError that names `path` if these are too many.
void check_holes(const std::filesystem::path& path, std::uint64_t holes);

/// True if a link below `root` ends below it as well, whatever the links on its way.
bool stays_inside(const std::filesystem::path& root, const std::string& link);

/// All that is below `root`, sorted by path. Throws EnvironmentError for what a store cannot keep:
/// links that leave the folder, whatever their way, sockets, pipes, devices, too many holes; and
/// for what cannot be read.
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

}  // namespace pipeline::archive

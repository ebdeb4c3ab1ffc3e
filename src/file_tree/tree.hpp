/// @file
/// Folders as values: their content, their digest, and copies of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/digest.hpp"

struct stat;

namespace pipeline::file_tree {

/// A file, folder or link below a folder.
struct TreeNode {
  enum class Kind : char { file = 'f', directory = 'd', link = 'l' };
  std::string path;  ///< Relative to the folder, with `/`.
  Kind kind = Kind::file;
  bool executable = false;
  /// Digest of a file; empty until hash_tree() or copy_tree() has read the file.
  core::Digest digest;
  std::string target;  ///< Target of a link, as stored.
  std::uint64_t bytes = 0;
};

/// Maximum total size of holes, the parts of sparse files that were never written. Holes cost
/// nothing to create, but as much to read as data. Files without holes may have any size, since
/// writing them took as long as reading them.
inline constexpr std::uint64_t max_holes = std::uint64_t{64} << 30;

/// Returns the number of bytes of a file that are holes, as reported by its file system. Throws
/// EnvironmentError if the file cannot be read.
std::uint64_t holes_in(const std::filesystem::path& file, const struct stat& status);
/// Returns the same of an open file; changes the file's position.
std::uint64_t holes_in(int file, const struct stat& status);
/// Throws EnvironmentError that names `path` if there are too many holes.
void check_holes(const std::filesystem::path& path, std::uint64_t holes);

/// The absolute paths that a folder has, or had for the step that wrote it.
using FolderNames = std::vector<std::filesystem::path>;

/// Returns the target of a link below a folder. A target that leads into the folder by one of the
/// folder's names becomes one that does not need the name: `file` for `/data/model/file`, and for
/// `../model/file`, which leads out of the folder and back. Other targets are returned as they are.
/// @param link path of the link, relative to the folder
std::string relative_target(const std::string& link, const std::string& target,
                            const FolderNames& names);

/// Returns true if a link below `root` also ends below it, with all links on its way resolved.
bool stays_inside(const std::filesystem::path& root, const std::string& link,
                  const FolderNames& names = {});

/// Returns everything below `root`, sorted by path. Throws EnvironmentError for what a store cannot
/// keep (links that leave the folder at any point, sockets, pipes, devices, too many holes) and for
/// files that cannot be read.
/// @param names the names of `root` in targets, which relative_target() leaves out
std::vector<TreeNode> scan_tree(const std::filesystem::path& root, const FolderNames& names = {});

/// Gives the links below `root` the targets that scan_tree() has returned.
void rewrite_links(const std::filesystem::path& root, const std::vector<TreeNode>& nodes);

/// Returns the digest of a folder with these contents, sorted by path. No file has the same digest.
core::Digest tree_digest(const std::vector<TreeNode>& nodes);

/// Reads every file below `root` and fills its digest.
void hash_tree(const std::filesystem::path& root, std::vector<TreeNode>& nodes);

/// Copies the nodes from `root` into the empty folder `target` and fills their digests with those
/// of the copied bytes.
/// @param copied increased by the bytes of files that had to be copied, because the file system
/// cannot let files share blocks
void copy_tree(const std::filesystem::path& root, std::vector<TreeNode>& nodes,
               const std::filesystem::path& target, std::uint64_t* copied = nullptr);

/// Copies a file and returns the digest of the copied bytes. The target must not exist.
/// @param mode mode of the new file, less the umask
/// @param bytes  receives the size of the file
/// @param copied as for copy_tree()
core::Digest copy_file(const std::filesystem::path& source, const std::filesystem::path& target,
                       unsigned mode, std::uint64_t* bytes = nullptr,
                       std::uint64_t* copied = nullptr);

}  // namespace pipeline::file_tree

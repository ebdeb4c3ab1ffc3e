/// @file
/// A tar of files from several places, generated while it is sent: build contexts, and files copied
/// into containers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pipeline::file_tree {

/// An entry: its path in the archive, and its content or the file that has it.
struct ContextFile {
  enum class Kind { file, directory, symlink };
  std::string path;  ///< Relative, with `/`.
  /// Generated content, or a symlink's target; if unset, the content is that of `source`.
  std::optional<std::string> content;
  std::filesystem::path source;
  std::uint64_t bytes = 0;  ///< For messages about large contexts; tar_stream() does not use it.
  unsigned mode = 0644;
  Kind kind = Kind::file;
};

/// Returns a file with this content.
inline ContextFile text_file(std::string path, std::string content) {
  const auto bytes = content.size();
  return {.path = std::move(path), .content = std::move(content), .bytes = bytes};
}

/// Fills the buffer and returns the number of bytes written; 0 at the end.
using TarSource = std::function<std::size_t(std::span<char>)>;

/// Returns a reproducible tar of the files: owner root, times 0. Each file is read when its entry
/// is sent. A file that became shorter meanwhile is padded with zeros. For a file that cannot be
/// read, the source throws EnvironmentError.
TarSource tar_stream(std::vector<ContextFile> files);

}  // namespace pipeline::file_tree

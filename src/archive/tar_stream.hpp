/// @file
/// A tar of files from anywhere, written while it is sent: build contexts, and what is copied into
/// containers. By libarchive, loaded on first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pipeline::archive {

/// An entry: its path in the archive, and its content or where that is.
struct ContextFile {
  enum class Kind { file, directory, symlink };
  std::string path;  ///< Relative, with `/`.
  std::optional<std::string>
      content;  ///< Generated, or a symlink's target; else read from `source`.
  std::filesystem::path source;
  std::uint64_t bytes = 0;
  unsigned mode = 0644;
  Kind kind = Kind::file;
};

/// Fills the buffer and returns how many bytes it wrote; 0 at the end.
using TarSource = std::function<std::size_t(std::span<char>)>;

/// A tar (GNU format) of the files, reproducible: owner root, times 0. Files are read when their
/// turn comes; one that has become shorter meanwhile is filled up with zeros, one that cannot be
/// read throws EnvironmentError.
TarSource tar_stream(std::vector<ContextFile> files);

}  // namespace pipeline::archive

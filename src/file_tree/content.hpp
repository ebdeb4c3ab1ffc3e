/// @file
/// A file or folder as a sequence of bytes to transfer: a file's own content, or a folder as a tar
/// that is generated on the fly. Can be read at any offset, repeatedly, and by several threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/file.hpp"
#include "file_tree/tree.hpp"

namespace pipeline::file_tree {

class Content {
 public:
  /// The content of a file or of a folder. The tar's names begin with `./`; it has no owners and
  /// times, so that equal folders give equal bytes.
  /// @param nodes the folder's content, as scan_tree() returns it
  explicit Content(const std::filesystem::path& file);
  Content(const std::filesystem::path& folder, const std::vector<TreeNode>& nodes);
  Content(Content&& other) noexcept;
  ~Content();

  std::uint64_t size() const { return size_; }
  /// Fills `into` from the offset; reads less than the span's size only at the end. Throws
  /// EnvironmentError for a file that cannot be read or became shorter.
  std::size_t read(std::uint64_t offset, std::span<char> into) const;

 private:
  struct Piece {
    std::uint64_t begin;
    std::string text;  ///< A header or padding; if empty, the piece is the content of `file`.
    std::filesystem::path file;  ///< Path of the piece's file.
  };
  void add(std::string text);
  std::size_t read_file(const Piece& piece, std::uint64_t offset, std::span<char> into) const;

  std::vector<Piece> pieces_;
  std::uint64_t size_ = 0;
  struct OpenFiles;
  std::unique_ptr<OpenFiles> open_;  ///< Files that were read last.
};

}  // namespace pipeline::file_tree

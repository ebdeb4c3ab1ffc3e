/// @file
/// A file or folder as a sequence of bytes to transfer: a file's own content, or a folder as a tar
/// that is generated on the fly. Can be read at any offset, repeatedly, and by several threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/digest.hpp"
#include "core/file.hpp"
#include "file_tree/tree.hpp"

namespace pipeline::file_tree {

class Content {
 public:
  /// The content of a file.
  explicit Content(const std::filesystem::path& file);
  /// The content of a folder, as a tar. Names in the tar begin with `./`; there are no owners and
  /// times in it, so that equal folders give equal bytes.
  /// @param nodes the folder's content, as scan_tree() returns it
  Content(const std::filesystem::path& folder, const std::vector<TreeNode>& nodes);
  Content(Content&& other) noexcept;
  ~Content();

  std::uint64_t size() const { return size_; }
  /// Fills `into` with the bytes from the offset on, and returns their number, which is less than
  /// the span's size only at the end. Throws EnvironmentError for a file that cannot be read or
  /// became shorter.
  std::size_t read(std::uint64_t offset, std::span<char> into) const;
  /// Returns the offsets in the tar at which the folder's files begin, in the order of their nodes;
  /// none for empty files.
  std::vector<std::uint64_t> file_offsets() const;

 private:
  struct Piece {
    std::uint64_t begin;
    std::string text;  ///< A header or padding; if empty, the piece is the content of `file`.
    std::filesystem::path file;
  };
  void add(std::string text);
  std::size_t read_file(const Piece& piece, std::uint64_t offset, std::span<char> into) const;

  std::vector<Piece> pieces_;
  std::uint64_t size_ = 0;
  struct OpenFiles;
  std::unique_ptr<OpenFiles> open_files_;  ///< The files that were read last, kept open.
};

/// Fills the digests of a folder's files while its tar is read for another purpose.
class FileDigests {
 public:
  /// @param nodes the nodes of `content`, which receive the digests; must outlive this object
  FileDigests(const Content& content, std::vector<TreeNode>& nodes);
  /// Reads the next bytes of the tar, from the first byte on.
  void update(std::string_view tar);

 private:
  struct File {
    std::uint64_t begin;
    TreeNode* node;
  };
  std::vector<File> files_;
  std::size_t next_ = 0;
  std::uint64_t position_ = 0;
  core::Hasher hasher_;
};

}  // namespace pipeline::file_tree

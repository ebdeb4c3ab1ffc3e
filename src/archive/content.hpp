/// @file
/// A file or folder as the bytes that travel: a file's own, a folder's as a tar that is never
/// written anywhere. May be read in any order, and again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "archive/tree.hpp"
#include "core/file.hpp"

namespace pipeline::archive {

class Content {
 public:
  /// What is at `path`. The tar's names begin with `./`; owners and times are none, so that equal
  /// folders are equal bytes.
  /// @param nodes of a folder, as scan_tree() gives them
  explicit Content(const std::filesystem::path& file);
  Content(const std::filesystem::path& folder, const std::vector<TreeNode>& nodes);

  std::uint64_t size() const { return size_; }
  /// Fills as much as there is from there on; less than the span only at the end. Throws
  /// EnvironmentError for what cannot be read, or became shorter.
  std::size_t read(std::uint64_t offset, std::span<char> into) const;

 private:
  struct Piece {
    std::uint64_t begin;
    std::string text;            ///< Of a header, or padding; or ...
    std::filesystem::path file;  ///< ... this one's bytes.
  };
  void add(std::string text);
  std::size_t read_file(const Piece& piece, std::uint64_t offset, std::span<char> into) const;

  std::vector<Piece> pieces_;
  std::uint64_t size_ = 0;
  mutable core::Descriptor open_;      ///< The file that was read last.
  mutable const Piece* of_ = nullptr;  ///< Whose that is.
};

}  // namespace pipeline::archive

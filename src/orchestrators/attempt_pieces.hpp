/// @file
/// The artifacts of a gathered input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/digest.hpp"

namespace pipeline::orchestrators {

/// An artifact in a gathered input, which is a folder of the outputs of several steps.
struct AttemptPiece {
  std::string file;  ///< Its name in the input's folder; there on this machine, unless elsewhere.
  core::Digest digest;
  std::uint64_t bytes = 0;    ///< The artifact's size; set if it is elsewhere.
  bool is_elsewhere = false;  ///< Only the remote store has the artifact (AttemptInput::elsewhere).
  bool is_directory = false;
  bool is_executable = false;  ///< Set for files only.
};

/// A list of pieces in little memory, because an input may have 100,000. Pieces are read as copies.
class AttemptPieces {
 public:
  void reserve(std::size_t count) { packed_.reserve(count); }
  void push_back(const AttemptPiece& piece) {
    packed_.push_back({piece.digest, piece.bytes, static_cast<std::uint32_t>(files_.size()),
                       piece.is_elsewhere, piece.is_directory, piece.is_executable});
    files_.append(piece.file).push_back('\0');
  }
  std::size_t size() const { return packed_.size(); }
  bool empty() const { return packed_.empty(); }
  AttemptPiece operator[](std::size_t i) const {
    const auto& piece = packed_[i];
    return {files_.c_str() + piece.file, piece.digest,       piece.bytes,
            piece.is_elsewhere,          piece.is_directory, piece.is_executable};
  }

 private:
  struct Packed {
    core::Digest digest;
    std::uint64_t bytes;
    std::uint32_t file;  ///< Offset of the name in files_.
    bool is_elsewhere, is_directory, is_executable;
  };
  std::vector<Packed> packed_;
  std::string files_;  ///< The names, each followed by a NUL.
};

}  // namespace pipeline::orchestrators

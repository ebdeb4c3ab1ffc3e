/// @file
/// The ranges of a large object that is downloaded to a file: they are written in any order, and
/// hashed in order. Used by `pipe` and by the stager.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "blobs/transfer_plan.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"

namespace pipeline::blobs {

/// The ranges of an object after its first range (transfer_plan.hpp), numbered from 0.
struct FileRanges {
  struct Span {
    std::uint64_t begin, end;
  };
  std::uint64_t total;  ///< Bytes of the object.
  std::uint64_t size;   ///< Bytes of a range; the last one has the rest.

  std::size_t count() const {
    return total <= first_range ? 0 : (total - first_range + size - 1) / size;
  }
  Span span(std::size_t i) const {
    const auto begin = first_range + i * size;
    return {begin, std::min(begin + size, total)};
  }
};

/// Writes all bytes at the offset. @param path for the message of the EnvironmentError
inline void write_at(int file, std::uint64_t offset, std::string_view bytes,
                     const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const auto count = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw core::system_error("cannot write " + path.string(), errno);
    offset += static_cast<std::uint64_t>(count);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

/// Adds a part of a file to the hash. @param path for the message of the EnvironmentError
inline void hash_span(int file, FileRanges::Span span, const std::filesystem::path& path,
                      core::Hasher& hasher) {
  std::vector<char> piece(256 << 10);
  while (span.begin < span.end) {
    const auto wanted = std::min<std::uint64_t>(piece.size(), span.end - span.begin);
    const auto count = ::pread(file, piece.data(), wanted, static_cast<off_t>(span.begin));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw core::system_error("cannot read " + path.string(), errno);
    if (count == 0)
      throw core::EnvironmentError(path.string() + " became shorter while it was hashed");
    hasher.update({piece.data(), static_cast<std::size_t>(count)});
    span.begin += static_cast<std::uint64_t>(count);
  }
}

}  // namespace pipeline::blobs

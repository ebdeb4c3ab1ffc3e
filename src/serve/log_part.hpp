/// @file
/// Parts of a log, which may be larger than memory and may grow.
#pragma once

#include <cstdint>
#include <string>

#include "core/file.hpp"

namespace pipeline::serve {

struct LogPart {
  std::uint64_t from = 0, to = 0;  ///< Range of the text in the log, bytes.
  std::uint64_t size = 0;          ///< Size of the whole log, bytes.
  std::string text;
};

/// Returns the size of an open file, bytes; 0 on failure.
std::uint64_t size_of(const core::Descriptor& file);

/// Returns at most `max_bytes` from the offset on: whole lines if one fits, else whole characters.
LogPart part_from(const core::Descriptor& file, std::uint64_t from, std::size_t max_bytes);
/// Returns at most `max_bytes` before the offset, in whole lines or characters as part_from() does.
LogPart part_before(const core::Descriptor& file, std::uint64_t to, std::size_t max_bytes);

}  // namespace pipeline::serve

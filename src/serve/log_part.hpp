/// @file
/// Parts of a log, which may be larger than memory and may grow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/file.hpp"

namespace pipeline::serve {

struct LogPart {
  std::uint64_t from = 0, to = 0;  ///< Range of the text in the log.
  std::uint64_t size = 0;          ///< Size of the whole log.
  std::string text;
};

/// Opens a log without following links; returns nothing if there is no regular file.
std::optional<core::Descriptor> open_log(const std::filesystem::path& file);
std::uint64_t size_of(const core::Descriptor& file);

/// Returns at most `max_bytes` from the offset on: whole lines if one fits, else whole characters.
LogPart part_from(const core::Descriptor& file, std::uint64_t from, std::size_t max_bytes);
/// Returns at most `max_bytes` before the offset, in whole lines or characters as part_from() does.
LogPart part_before(const core::Descriptor& file, std::uint64_t to, std::size_t max_bytes);

}  // namespace pipeline::serve

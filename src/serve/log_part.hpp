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
  std::uint64_t from = 0, to = 0;  ///< The bytes that the text stands for.
  std::uint64_t size = 0;          ///< Of the whole log.
  std::string text;
};

/// Opens a log without following links; nothing if there is none.
std::optional<core::Descriptor> open_log(const std::filesystem::path& file);
std::uint64_t size_of(const core::Descriptor& file);

/// Returns about `most` bytes from the offset on. The part begins and ends with whole lines where a
/// line fits into it, else with whole characters.
LogPart part_from(const core::Descriptor& file, std::uint64_t from, std::size_t most);
/// Returns about `most` bytes that end at the offset, likewise.
LogPart part_before(const core::Descriptor& file, std::uint64_t to, std::size_t most);

}  // namespace pipeline::serve

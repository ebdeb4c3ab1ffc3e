/// @file
/// Times as other programs write them (RFC 3339).
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace pipeline::core {

/// Parses `2026-11-21T08:15:00Z` or `2026-11-21T08:15:00.123456789+01:00`; returns nothing for
/// other texts.
std::optional<std::chrono::system_clock::time_point> parse_time(std::string_view text);

}  // namespace pipeline::core

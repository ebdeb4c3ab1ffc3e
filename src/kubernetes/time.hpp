/// @file
/// Times as Kubernetes writes them (RFC 3339).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace pipeline::kubernetes {

/// `2026-11-21T08:15:00Z`, `2026-11-21T08:15:00.123456789+01:00`; nothing for other text.
std::optional<std::chrono::system_clock::time_point> parse_time(std::string_view text);
/// `2026-11-21T08:15:00Z`; what is less than a second is left out.
std::string format_time(std::chrono::system_clock::time_point time);

}  // namespace pipeline::kubernetes

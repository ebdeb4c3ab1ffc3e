/// @file
/// Parses and formats sizes and durations as users write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <pipeline/events.hpp>
#include <pipeline/settings.hpp>

namespace pipeline::core {

/// Parses `512MB`, `8GiB`, `1.5GiB` or `1073741824`; the units are KB..PB (powers of 1000),
/// KiB..PiB (powers of 1024), docker's b/k/m/g and Kubernetes' Ki/Mi/Gi. Returns nothing for texts
/// that are malformed, negative, or above 2^63-1.
std::optional<Bytes> parse_bytes(std::string_view text);
std::string format_bytes(Bytes bytes);  ///< For example `1.5 GiB`.

/// Parses Kubernetes' quantities: `2`, `500m`, `0.5`, `8Gi`, `20G`, `1e3`. Returns nothing for
/// malformed or negative texts.
std::optional<double> parse_quantity(std::string_view text);

/// Parses `90`, `90s`, `1.5h`, `1h30m` or `250ms`; a bare number is seconds. Returns nothing for
/// malformed or negative texts.
std::optional<Duration> parse_duration(std::string_view text);
std::string format_duration(Duration duration);  ///< For example `1h02m`, `3.2s`, `250ms`.

/// Returns `2026-11-21 08:15:00Z`, which is UTC; empty for the zero time.
std::string format_time(WallTime time);

}  // namespace pipeline::core

/// @file
/// Sizes and durations as users write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <pipeline/events.hpp>
#include <pipeline/settings.hpp>

namespace pipeline::core {

/// `512MB`, `8GiB`, `1.5GiB`, `1073741824`; units KB..PB (powers of 1000), KiB..PiB (of 1024),
/// docker's b/k/m/g and Kubernetes' Ki/Mi/Gi too. Nothing for what is malformed, negative, or above
/// 2^63-1.
std::optional<Bytes> parse_bytes(std::string_view text);
std::string format_bytes(Bytes bytes);  ///< `1.5 GiB`

/// Kubernetes' own: `2`, `500m`, `0.5`, `8Gi`, `20G`, `1e3`. Nothing for what is malformed or
/// negative.
std::optional<double> parse_quantity(std::string_view text);

/// `90`, `90s`, `1.5h`, `1h30m`, `250ms`; a bare number is seconds. Nothing for what is malformed
/// or negative.
std::optional<Duration> parse_duration(std::string_view text);
std::string format_duration(Duration duration);  ///< `1h02m`, `3.2s`, `250ms`

/// `2026-11-21 08:15:00` in UTC with a `Z`, or empty for the zero time.
std::string format_time(WallTime time);

}  // namespace pipeline::core

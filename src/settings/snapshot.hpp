/// @file
/// The moments of the snapshot archives of Debian and Ubuntu, which keep all earlier packages.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace pipeline::settings {

/// Returns the moment in the notation of snapshot servers, `20261101T120000Z`. Accepts that
/// notation, `2026-11-01T12:00:00Z`, and a date, which stands for its first second (UTC). Returns
/// nothing for other texts and for dates that do not exist.
std::optional<std::string> snapshot_id(std::string_view text);

/// Returns true if the moment is not in the future. For a future moment, the servers return the
/// newest packages, which change later.
/// @param id a text that snapshot_id() has returned
bool has_passed(std::string_view id, std::chrono::system_clock::time_point now);

/// Returns true for a text that names a moment in the past.
bool is_snapshot(std::string_view text);

/// Returns the date that another notation probably means, such as `1.11.2026` or `2026/11/1`.
std::string nearest_snapshot(std::string_view text);

}  // namespace pipeline::settings

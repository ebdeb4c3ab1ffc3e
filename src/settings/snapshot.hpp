/// @file
/// The moments whose packages the archives of Debian and Ubuntu keep.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace pipeline::settings {

/// Returns a moment as snapshot servers name it, `20261101T120000Z`. It is written like that, as
/// `2026-11-01T12:00:00Z`, or as a date, whose first second is meant. Nothing for other texts and
/// for days that no calendar has.
std::optional<std::string> snapshot_id(std::string_view text);

/// Returns true if the servers can know what the archives had at a snapshot_id(): for a moment in
/// the future they would answer with the newest packages, and later with others.
bool has_passed(std::string_view id, std::chrono::system_clock::time_point now);

/// As has_passed(), for a text that may not be a moment at all.
bool is_snapshot(std::string_view text);

/// Returns the date that another notation probably means, such as `1.11.2026` or `2026/11/1`.
std::string nearest_snapshot(std::string_view text);

}  // namespace pipeline::settings

/// @file
/// Conflicts that git leaves in a lock file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pipeline::lockfile {

/// Returns true for a line with which git marks a conflict.
bool is_conflict_marker(std::string_view line);

struct ConflictSides {
  std::string ours, theirs;
};

/// Returns both versions of a text with conflict markers; of a common ancestor's, which git writes
/// with `merge.conflictStyle=diff3`, nothing. Returns nothing for a text without markers, or with
/// some that are missing or out of order.
std::optional<ConflictSides> conflict_sides(std::string_view text);

}  // namespace pipeline::lockfile

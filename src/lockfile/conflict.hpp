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

/// Returns both versions of a text with conflict markers, without the common ancestor that git
/// writes with `merge.conflictStyle=diff3`. Returns nothing for a text without markers, or with
/// missing or misplaced markers.
std::optional<ConflictSides> conflict_sides(std::string_view text);

}  // namespace pipeline::lockfile

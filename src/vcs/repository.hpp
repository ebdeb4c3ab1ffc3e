/// @file
/// Finds the git repository that contains a folder, through libgit2 (loaded on first use).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipeline::vcs {

struct SourceState {
  std::string commit;  ///< 40 hex digits; empty in a repository without commits.
  bool dirty = false;  ///< Tracked files below `folder` differ from the commit, or untracked files
                       ///< that are not ignored exist there.
  std::string remote_url;  ///< URL of `origin` without credentials; may be empty.
};

/// Returns nothing if `folder` is in no repository or libgit2 is missing.
std::optional<SourceState> source_state(const std::filesystem::path& folder);

/// Returns the files below `folder` that git tracks (that its index has), relative to `folder` and
/// sorted. Returns none if the folder is in no repository or libgit2 is missing.
std::vector<std::string> tracked_files(const std::filesystem::path& folder);

}  // namespace pipeline::vcs

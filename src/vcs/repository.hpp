/// @file
/// The git repository that contains a folder, read through libgit2 (loaded on first use).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipeline::vcs {

struct SourceState {
  std::string commit;  ///< 40 hex digits; empty in a repository without commits.
  bool dirty = false;  ///< Files below `folder` have changed, or are neither tracked nor ignored.
  std::string remote_url;  ///< URL of `origin` without credentials; may be empty.
};

/// Returns `folder` or the nearest folder above it that has a `.git`; nothing if there is none.
/// Does not load libgit2.
std::optional<std::filesystem::path> repository_top(const std::filesystem::path& folder);

/// Returns nothing if `folder` is in no repository or libgit2 is missing. Throws core::Stopped
/// after core::stop_reading().
std::optional<SourceState> source_state(const std::filesystem::path& folder);

/// Returns the files below `folder` that are in git's index, relative to `folder` and sorted, with
/// those of submodules; none if the folder is in no repository or libgit2 is missing. Throws
/// core::Stopped after core::stop_reading().
std::vector<std::string> tracked_files(const std::filesystem::path& folder);

/// Returns the command that checks out a file or folder which a sparse checkout leaves out; empty
/// if the checkout leaves out nothing there. @param path relative to `folder`
std::string sparse_advice(const std::filesystem::path& folder, const std::string& path);

/// Returns true if the folder is one that git keeps for a submodule, checked out or not.
bool is_submodule(const std::filesystem::path& folder);

}  // namespace pipeline::vcs

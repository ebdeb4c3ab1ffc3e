/// @file
/// The disk space that runs take, and the runs that fit a budget.
#pragma once

#include <filesystem>
#include <vector>

#include "driver/workspace.hpp"
#include "store/run_store.hpp"

namespace pipeline::driver {

/// Returns the bytes of all files below the folder, or those of a file.
Bytes size_of(const std::filesystem::path& folder);

/// Returns how many of the newest runs have artifacts that together fit the budget; at least 1
/// unless there are no runs. An artifact that several runs use counts once; published artifacts
/// always count.
/// @param all newest first
std::size_t newest_within(store::RunStore& store, const std::vector<store::RunRecord>& all,
                          Bytes budget);

/// Returns the budget of the state folder: `keep_storage` of the profile, else $PIPE_KEEP_STORAGE;
/// 0: none. Throws InputError for a variable that is not a size.
Bytes storage_budget(const WorkspaceOptions& options);

/// Warns if the artifacts of the state folder take more space than the budget. Without a budget no
/// file is read.
void warn_of_storage(const Workspace& workspace, const std::filesystem::path& state);

}  // namespace pipeline::driver

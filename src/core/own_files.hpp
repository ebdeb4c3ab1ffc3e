/// @file
/// Files that `pipe` itself writes into folders of the user's: no code, build context or key has
/// them.
#pragma once

#include <filesystem>

namespace pipeline::core {

/// Returns true for a state folder, whatever its name.
bool is_state_folder(const std::filesystem::path& folder);
/// Returns true for a pipeline's lock file, whatever its name, and for files that replace others.
bool is_own_file(const std::filesystem::path& file);

}  // namespace pipeline::core

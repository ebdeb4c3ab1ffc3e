/// @file
/// Recognises files that `pipe` itself writes into folders of the user's. Such files never become a
/// part of code, build contexts or keys.
#pragma once

#include <filesystem>

namespace pipeline::core {

/// Returns true for a state folder, whatever its name.
bool is_state_folder(const std::filesystem::path& folder);
/// Returns true for a pipeline's lock file, whatever its name, and for the temporary file that
/// replaces a lock file.
bool is_own_file(const std::filesystem::path& file);

}  // namespace pipeline::core

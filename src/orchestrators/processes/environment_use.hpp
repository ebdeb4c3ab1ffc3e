/// @file
/// Virtual environments of local steps that no process uses.
#pragma once

#include <filesystem>
#include <vector>

namespace pipeline::orchestrators::processes {

/// Returns the folder with all virtual environments of the user.
std::filesystem::path environments_folder();

/// Returns the virtual environments in whose name no process of the user runs: steps have their
/// folder in VIRTUAL_ENV.
std::vector<std::filesystem::path> unused_environments();

/// Removes a virtual environment. Returns false if a process is making it.
bool remove_environment(const std::filesystem::path& folder);

}  // namespace pipeline::orchestrators::processes

/// @file
/// Finds and removes the virtual environments that no process of this machine uses.
#pragma once

#include <filesystem>
#include <vector>

namespace pipeline::orchestrators::processes {

/// Returns the folder with all virtual environments of the user.
std::filesystem::path environments_folder();

/// Returns the virtual environments whose folder is in VIRTUAL_ENV of no process of the user on
/// this machine. The processes of a step in a virtual environment have the variable.
std::vector<std::filesystem::path> unused_environments();

/// Removes a virtual environment. Returns false, and removes nothing, if a process is making it.
bool remove_environment(const std::filesystem::path& folder);

}  // namespace pipeline::orchestrators::processes

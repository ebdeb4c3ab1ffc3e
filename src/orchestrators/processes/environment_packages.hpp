/// @file
/// The locked packages of the virtual environments of this machine: noted when one is made, so that
/// it can be said what a new one changes.
#pragma once

#include <filesystem>
#include <string>

#include "lockfile/locked_environment.hpp"

namespace pipeline::orchestrators::processes {

/// Notes in an environment's folder which packages were installed.
void write_packages(const std::filesystem::path& environment,
                    const lockfile::LockedEnvironment& packages);

/// Returns the differences from the environment that shares most packages: `added tabulate 0.9.0;
/// 35 KiB to download`. The packages of all environments are in the installer's cache.
/// @param environments the folder with all environments
std::string describe_new_environment(const std::filesystem::path& environments,
                                     const lockfile::LockedEnvironment& packages);

}  // namespace pipeline::orchestrators::processes

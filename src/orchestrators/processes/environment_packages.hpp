/// @file
/// Records which locked packages each virtual environment of this machine has, and tells from these
/// records what a new environment changes.
#pragma once

#include <filesystem>
#include <string>

#include "lockfile/locked_environment.hpp"

namespace pipeline::orchestrators::processes {

/// Records in the environment's folder which packages were installed.
void write_packages(const std::filesystem::path& environment,
                    const lockfile::LockedEnvironment& packages);

/// Returns how these packages differ from the most similar environment of this machine, as in
/// `added tabulate 0.9.0; 35 KiB to download`. Packages that any environment has do not count as
/// downloads, because they are in the installer's cache.
/// @param environments the folder with all environments of this machine
/// @param packages of the new environment
std::string describe_new_environment(const std::filesystem::path& environments,
                                     const lockfile::LockedEnvironment& packages);

}  // namespace pipeline::orchestrators::processes

/// @file
/// The files and options that tell uv and pip which packages an environment has.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "orchestrators/processes/virtual_environment.hpp"

namespace pipeline::orchestrators::processes {

constexpr auto project_file = "pyproject.toml";

/// Name of the link to the pipeline's folder, in the folder that uv and pip work in. In the
/// pipeline's folder itself, uv and pip could take its files for Python modules or for their
/// configuration.
constexpr auto root_link = "root";

/// Returns the user's options for uv or pip, with paths relative to the folder that it works in.
/// @param root the pipeline's folder
std::vector<std::string> arguments_of(const EnvironmentPlan& plan,
                                      const std::filesystem::path& root);

/// Writes the requirements, the pyproject.toml and the constraints to files in `folder`. Returns
/// the files that name packages to install. Only this user may be able to read the folder, because
/// requirements can contain credentials.
std::vector<std::filesystem::path> write_requirements(
    const std::filesystem::path& folder, const python_packages::PythonRequirements& asked,
    const std::filesystem::path& root);

/// Adds the option for the constraints that requirement_files() writes to `folder`.
void add_constraints(std::vector<std::string>& install, const EnvironmentPlan& plan,
                     const std::filesystem::path& folder);

/// Writes and returns the requirements files of an installation. Packages without a hash are in
/// a file of their own, because pip demands hashes of all packages of a file if one has a hash.
std::vector<std::filesystem::path> requirement_files(const EnvironmentPlan& plan,
                                                     const std::filesystem::path& folder,
                                                     const std::filesystem::path& root);

/// Returns why a command that only looks (`pipe plan`) cannot find out the packages: to do that,
/// programs of the pipeline would be started, or packages built. Empty if it can.
std::string unknown_to_look(const python_packages::PythonRequirements& asked);

/// Moves index addresses that contain a login from the arguments of an installer to its variables,
/// because other users of the machine can read command lines.
void move_logins(std::vector<std::string>& arguments, StringMap& variables);

}  // namespace pipeline::orchestrators::processes

/// @file
/// The files and options that tell uv and pip which packages an environment has.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "orchestrators/processes/virtual_environment.hpp"

namespace pipeline::orchestrators::processes {

constexpr auto project_file = "pyproject.toml";

/// The link to the pipeline's folder in the folder that tools work in. They see no other name of
/// it there, so that none of its files is a module or a configuration to them.
constexpr auto root_link = "root";

/// Returns the options of the user's for the tool, their paths as it sees them.
std::vector<std::string> arguments_of(const EnvironmentPlan& plan,
                                      const std::filesystem::path& root);

/// Writes what is asked for into files, and returns those. The folder is one that only this user
/// can read: there may be credentials in requirements.
std::vector<std::filesystem::path> write_requirements(
    const std::filesystem::path& folder, const python_packages::PythonRequirements& asked,
    const std::filesystem::path& root);

/// Adds the option for the constraints that requirement_files() has written to `folder`.
void add_constraints(std::vector<std::string>& install, const EnvironmentPlan& plan,
                     const std::filesystem::path& folder);

/// Writes and returns the requirements files of an installation. Where one package has a hash, pip
/// wants all to have one: those without are in a file of their own.
std::vector<std::filesystem::path> requirement_files(const EnvironmentPlan& plan,
                                                     const std::filesystem::path& folder,
                                                     const std::filesystem::path& root);

/// Returns why it is not known which packages these are before a run, which may start programs of
/// the pipeline's and build packages; empty if it is known.
std::string unknown_to_look(const python_packages::PythonRequirements& asked);

/// Moves addresses of indexes that have a login from the arguments of an installer to its
/// variables: other users of the machine read command lines.
void move_logins(std::vector<std::string>& arguments, StringMap& variables);

}  // namespace pipeline::orchestrators::processes

/// @file
/// Python requirements of a step from all sources of DockerSettings: a list, this machine's
/// environment, or an export command.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/settings.hpp>

namespace pipeline::python_packages {

/// The packages that a step asks a Python installer for.
struct PythonRequirements {
  std::vector<std::string> requirements;  ///< Lines of a requirements file; may hold credentials.
  std::vector<std::string> constraints;   ///< `numpy<2`: limits for packages that others require.
  std::vector<std::string> arguments;     ///< The installer's options.
  std::string pyproject;  ///< Text of a pyproject.toml whose dependencies are asked for, too.
  std::string installer;  ///< `uv` or `pip`.
  StringMap environment;  ///< Variables that the installer sees.
  bool empty() const { return requirements.empty() && pyproject.empty(); }
};

/// Returns the packages that the settings ask for, from all their sources; an editable install
/// becomes the install of a copy. See requirement_lines().
PythonRequirements python_requirements(const DockerSettings& settings,
                                       const std::filesystem::path& root,
                                       std::vector<std::string>& notices);

/// Returns true for a line of a requirements file that says where packages are looked for.
bool is_index_option(const std::string& requirement_line);

/// Returns the options among the requirements that an installation of locked packages needs: those
/// with addresses of indexes. Packages from a folder of this machine have their paths in the lock.
std::vector<std::string> install_options(const PythonRequirements& python,
                                         const std::filesystem::path& root);

/// Returns the path of a requirement that is a file or folder below `root`, as it is written and
/// without extras and markers: `./wheels/x.whl`. Returns nothing for any other requirement.
std::optional<std::string> local_path(const std::string& requirement_line,
                                      const std::filesystem::path& root);

/// Returns lines of a requirements file: options in their order, then sorted requirements without
/// duplicates. A pyproject.toml without an export command is not read here, because the installer
/// reads it. Throws EnvironmentError if a command fails.
/// @param root    folder of relative paths and of commands
/// @param notices receives what could not be included
std::vector<std::string> requirement_lines(const DockerSettings& settings,
                                           const std::filesystem::path& root,
                                           std::vector<std::string>& notices);

/// Returns the output of `pip freeze` without packages that exist only on this machine (editable
/// installs, local files), which are reported in `notices`.
std::vector<std::string> portable_freeze(const std::string& printed,
                                         std::vector<std::string>& notices);

/// Returns true if an installation of the requirements chooses versions: one of them is not
/// `name==version` (with extras, marker or hashes). A package that a pinned package requires counts
/// only if it is named, too.
bool resolves(const std::vector<std::string>& requirement_lines);

/// Returns the installer's options, one a line, for python_package_installer_args: `true` and null
/// give `--key`, false nothing, a list one option for each item.
std::vector<std::string> installer_arguments(const std::map<std::string, Json>& options);

/// Returns the options for an installation of locked packages: all but those that choose versions,
/// because the lock has chosen the versions, and the installer refuses some of these options.
std::vector<std::string> install_arguments(const std::vector<std::string>& arguments);

/// Runs a program in a folder and returns the program's standard output. Throws EnvironmentError
/// with the last lines of the standard error.
/// @param folder if empty, the program runs in a new folder and without PYTHONPATH
std::string output_of(const std::vector<std::string>& command, const std::filesystem::path& folder);

}  // namespace pipeline::python_packages

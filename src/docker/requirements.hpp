/// @file
/// Python requirements of a step from all sources of DockerSettings: a list, this machine's
/// environment, or an export command.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <pipeline/settings.hpp>

namespace pipeline::docker {

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

/// Returns true if installing them chooses versions: one of them is not `name==version` (with
/// extras, marker or hashes). Packages that a pinned one requires count only if they are named,
/// too.
bool resolves(const std::vector<std::string>& requirement_lines);

/// Returns the installer's options, one a line, for python_package_installer_args: `true` and null
/// give `--key`, false nothing, a list one option for each item.
std::vector<std::string> installer_arguments(const std::map<std::string, Json>& options);

/// Returns the standard output of a program run in `folder`. Throws EnvironmentError with the last
/// lines of its standard error.
std::string output_of(const std::vector<std::string>& command, const std::filesystem::path& folder);

}  // namespace pipeline::docker

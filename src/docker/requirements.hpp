/// @file
/// Python requirements of a step, from all that DockerSettings may name: the list, the caller's
/// environment, an export command.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <pipeline/settings.hpp>

namespace pipeline::docker {

/// Lines of a requirements file: options in the order given, then requirements sorted, each once.
/// pyproject.toml without an export command is not read here: the installer reads it. Throws
/// EnvironmentError when a command fails.
/// @param root    where relative paths and commands start
/// @param notices gets what could not be taken over
std::vector<std::string> requirement_lines(const DockerSettings& settings,
                                           const std::filesystem::path& root,
                                           std::vector<std::string>& notices);

/// What `pip freeze` printed, without what is only on this machine (editable installs, local
/// files), which goes to `notices`.
std::vector<std::string> portable_freeze(const std::string& printed,
                                         std::vector<std::string>& notices);

/// True if installing them chooses versions: one of them is no `name==version` (with extras, marker
/// or hashes). What a pinned one requires in turn counts only where it is named, too.
bool resolves(const std::vector<std::string>& requirement_lines);

/// One option of the installer a line, from python_package_installer_args: `true` and null give
/// `--key`, false nothing, a list one option each.
std::vector<std::string> installer_arguments(const std::map<std::string, Json>& options);

/// Standard output of a program run in `folder`. Throws EnvironmentError with the last lines of its
/// standard error.
std::string output_of(const std::vector<std::string>& command, const std::filesystem::path& folder);

}  // namespace pipeline::docker

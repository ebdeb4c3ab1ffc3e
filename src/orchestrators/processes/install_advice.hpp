/// @file
/// Advice for an installation of Python packages that failed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "orchestrators/processes/programs.hpp"

namespace pipeline::orchestrators::processes {

/// Returns advice derived from the installer's output.
/// @param root the folder that relative paths were taken from
std::vector<std::string> advice_for_failed_install(const std::string& output,
                                                   const FoundProgram& python,
                                                   const std::filesystem::path& root);

}  // namespace pipeline::orchestrators::processes

/// @file
/// Requirements that a program such as `uv export` prints. A command that only looks, such as `pipe
/// plan`, does not run the program, and puts a comment with the reason among the requirements.
#pragma once

#include <string>

#include "python_packages/requirements.hpp"

namespace pipeline::python_packages {

/// Adds the comment.
/// @param why such as "`uv` says which packages"
void mark_unknown(PythonRequirements& python, const std::string& why);

/// Returns why not all requirements are known; empty if they are.
std::string unknown_reason(const PythonRequirements& python);

}  // namespace pipeline::python_packages

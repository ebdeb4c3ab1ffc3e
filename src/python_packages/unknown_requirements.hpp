/// @file
/// Requirements that a program prints, such as `uv export`. A command that only looks, such as
/// `pipe plan`, does not run the program; a comment among the requirements says so.
#pragma once

#include <string>

#include "python_packages/requirements.hpp"

namespace pipeline::python_packages {

/// Adds the comment.
/// @param why such as "`uv export` says which packages"
void leave_unknown(PythonRequirements& python, const std::string& why);

/// Returns why not all requirements are known; empty if they are.
std::string unknown_of(const PythonRequirements& python);

}  // namespace pipeline::python_packages

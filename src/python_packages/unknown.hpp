/// @file
/// Requirements that a command which only looks does not know, because a program says them: a
/// comment stands for these, so that what is rendered shows it.
#pragma once

#include <string>

#include "python_packages/requirements.hpp"

namespace pipeline::python_packages {

/// @param why such as `uv export` says which packages
void leave_unknown(PythonRequirements& python, const std::string& why);

/// Returns why not all requirements are known; empty if they are.
std::string unknown_of(const PythonRequirements& python);

}  // namespace pipeline::python_packages

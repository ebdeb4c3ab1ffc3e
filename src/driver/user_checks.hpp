/// @file
/// Reports steps in containers whose user is somebody else on this machine.
#pragma once

#include <vector>

#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"

namespace pipeline::driver {

/// Returns a warning for each user number that belongs to another account of this machine. That
/// account can read the variables of the steps' processes and change their files.
/// @param steps the steps that run in containers on this machine
std::vector<core::Diagnostic> check_users(const std::vector<const StepSpec*>& steps);

}  // namespace pipeline::driver

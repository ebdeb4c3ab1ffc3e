/// @file
/// Reports steps in containers whose user is somebody else on this machine.
#pragma once

#include <vector>

#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"

namespace pipeline::driver {

/// Returns a warning for each user number that belongs to another account of this machine, if the
/// step has variables or secrets: that account can read those of the step's processes.
/// @param steps the steps that run in containers on this machine
std::vector<core::Diagnostic> check_users(const std::vector<const StepSpec*>& steps);

}  // namespace pipeline::driver

/// @file
/// Reports steps whose results may be stale, because their keys do not cover data that they read
/// from volumes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"

namespace pipeline::driver {

/// A step and the name of the orchestrator that it runs on.
using PlacedStep = std::pair<const StepSpec*, std::string>;

/// Returns a warning for `docker.volumes`, and one for the claims of a cluster, about the steps
/// that can be reused although they read data there and have no `version`.
std::vector<core::Diagnostic> check_volumes(const std::vector<PlacedStep>& steps);

}  // namespace pipeline::driver

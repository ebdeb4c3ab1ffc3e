/// @file
/// The images of a step's services. They are looked up, pulled and pinned as parent images are.
#pragma once

#include <string>

#include "orchestrators/environments.hpp"

namespace pipeline::orchestrators::containers {

/// Returns a made-up step whose environment is the service's image, for code that takes a step.
StepSpec step_of_service(const StepSpec& step, const ServiceSpec& service);

/// Adds a service's environment to that of its step. The result is ready if both are ready, and has
/// an id if both have one.
void add_service(Environment& environment, const Environment& service);

}  // namespace pipeline::orchestrators::containers

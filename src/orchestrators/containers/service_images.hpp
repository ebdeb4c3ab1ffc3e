/// @file
/// The images of a step's services. They are looked up, pulled and pinned as parent images are.
#pragma once

#include <string>

#include "orchestrators/environments.hpp"

namespace pipeline::orchestrators::containers {

/// Returns a step whose image is that of the service.
StepSpec step_of_service(const StepSpec& step, const ServiceSpec& service);

/// Adds a service's environment to that of its step, which is ready if both are, and has an id if
/// both have.
void add_service(Environment& environment, const Environment& service);

}  // namespace pipeline::orchestrators::containers

/// @file
/// The environment variables of a step's service.
#pragma once

#include <string>
#include <vector>

#include "orchestrators/attempts.hpp"

namespace pipeline::orchestrators::containers {

struct ServiceVariable {
  std::string name, value;
  bool is_secret = false;
};

/// Returns the paths of the step's inputs and the service's own variables, in the order of their
/// names. A variable without a value has that of the step's secret or variable of the name.
std::vector<ServiceVariable> service_variables(const AttemptSpec& attempt,
                                               const ServiceSpec& service);

}  // namespace pipeline::orchestrators::containers

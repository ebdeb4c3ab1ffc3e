/// @file
/// The environment variables of a service, a container that runs beside a step.
#pragma once

#include <string>
#include <vector>

#include "orchestrators/attempts.hpp"

namespace pipeline::orchestrators::containers {

struct ServiceVariable {
  std::string name, value;
  bool is_secret = false;
};

/// Returns the variables of the service's container, in the order of their names: `PIPE_INPUT_NAME`
/// with the path of each input of the step, and the variables that the service declares. A variable
/// that is declared without a value gets the value of the step's secret of that name, or else of
/// the step's variable; if the step has neither, the variable is left out.
std::vector<ServiceVariable> service_variables(const AttemptSpec& attempt,
                                               const ServiceSpec& service);

}  // namespace pipeline::orchestrators::containers

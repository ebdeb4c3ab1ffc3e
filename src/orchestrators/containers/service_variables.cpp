#include "orchestrators/containers/service_variables.hpp"

#include <map>

#include "core/identifier.hpp"
#include "orchestrators/containers/container_layout.hpp"

namespace pipeline::orchestrators::containers {

std::vector<ServiceVariable> service_variables(const AttemptSpec& attempt,
                                               const ServiceSpec& service) {
  std::map<std::string, ServiceVariable> variables;
  for (const auto& input : attempt.inputs) {
    const auto name = core::variable_name("PIPE_INPUT_", input.name);
    variables[name] = {.name = name, .value = path_of(input, container_layout())};
  }
  for (const auto& [name, value] : service.environment) {
    const auto secret = attempt.secrets.find(name);
    const auto own = attempt.environment.find(name);
    if (value)
      variables[name] = {.name = name, .value = *value};
    else if (secret != attempt.secrets.end())
      variables[name] = {.name = name, .value = secret->second, .is_secret = true};
    else if (own != attempt.environment.end())
      variables[name] = {.name = name, .value = own->second};
  }
  std::vector<ServiceVariable> list;
  for (auto& [name, variable] : variables) list.push_back(std::move(variable));
  return list;
}

}  // namespace pipeline::orchestrators::containers

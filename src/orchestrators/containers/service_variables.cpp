#include "orchestrators/containers/service_variables.hpp"

#include <map>

#include "core/identifier.hpp"
#include "orchestrators/containers/container_layout.hpp"

namespace pipeline::orchestrators::containers {

std::vector<ServiceVariable> service_variables(const AttemptSpec& attempt,
                                               const ServiceSpec& service) {
  std::map<std::string, ServiceVariable> variables;
  const auto set = [&](const std::string& name, const std::string& value, bool is_secret) {
    variables[name] = {name, value, is_secret};
  };
  for (const auto& input : attempt.inputs)
    set(core::variable_name("PIPE_INPUT_", input.name), path_of(input, container_layout()), false);
  for (const auto& [name, value] : service.environment) {
    const auto secret = attempt.secrets.find(name);
    const auto own = attempt.environment.find(name);
    if (value)
      set(name, *value, false);
    else if (secret != attempt.secrets.end())
      set(name, secret->second, true);
    else if (own != attempt.environment.end())
      set(name, own->second, false);
  }
  std::vector<ServiceVariable> list;
  for (auto& [name, variable] : variables) list.push_back(std::move(variable));
  return list;
}

}  // namespace pipeline::orchestrators::containers

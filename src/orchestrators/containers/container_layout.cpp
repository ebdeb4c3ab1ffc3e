#include "orchestrators/containers/container_layout.hpp"

#include <nlohmann/json.hpp>

namespace pipeline::orchestrators::containers {

const Layout& container_layout() {
  static const Layout layout{.code = "/pipe/code",
                             .inputs = "/pipe/inputs",
                             .outputs = std::string(container_outputs),
                             .scratch = container_scratch,
                             .program = {},
                             .checkpoint = "/pipe/checkpoint"};
  return layout;
}

std::string runtime_part(const DockerSettings& settings) {
  nlohmann::json part;
  part["runtime_environment"] = settings.runtime_environment;
  part["user"] = settings.user.value_or("");
  part["platform"] = settings.platform.value_or("");
  part["network"] = settings.network.value_or("");
  part["volumes"] = settings.volumes.items();
  part["run_args"] = settings.run_args;
  return part.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace pipeline::orchestrators::containers

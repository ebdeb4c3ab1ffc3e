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

void add_defaults(StringMap& variables, const AttemptSpec& attempt, std::size_t gpus) {
  const auto& image = attempt.step.settings->docker.environment;
  const auto* scratch = container_scratch.c_str();
  for (const auto& [name, value] : {
           std::pair("HOME", scratch),  // Writable, whichever user the step runs as.
           std::pair("TMPDIR", scratch),
           std::pair("PYTHONDONTWRITEBYTECODE", "1"),  // The code is read-only.
           std::pair("PYTHONUNBUFFERED", "1"),         // Python would write to a pipe in blocks.
       })
    if (!image.contains(name)) variables.try_emplace(name, value);
  if (gpus == 0 || attempt.step.settings->resources.gpu_ids != GpuIds::index ||
      image.contains("CUDA_VISIBLE_DEVICES"))
    return;
  std::string indices = "0";  // CUDA counts the container's GPUs.
  for (std::size_t i = 1; i < gpus; ++i) indices += "," + std::to_string(i);
  variables.try_emplace("CUDA_VISIBLE_DEVICES", indices);
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

#include "orchestrators/catalog/catalog.hpp"

namespace pipeline::orchestrators {

Entry docker_entry() {
  return {.name = "docker",
          .help = "in containers",
          .settings = "docker",
          .traits = {.uses_images = true,
                     .needs_engine = true,
                     .runs_on_engine = true,
                     .runs_nodes = true},
          .connection = {{.name = "engines",
                          .key = "engines",
                          .kind = ConnectionField::Kind::hosts,
                          .identifies_service = true}},
          .setting_outside_key = [](const StepSpec& step) -> std::string {
            return step.settings->docker.volumes.items().empty() ? "" : "docker.volumes";
          }};
}

}  // namespace pipeline::orchestrators

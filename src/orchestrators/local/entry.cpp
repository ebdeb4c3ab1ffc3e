#include "orchestrators/catalog/catalog.hpp"

namespace pipeline::orchestrators {

Entry local_entry() {
  return {.name = "local",
          .help = "as processes of this machine",
          .traits = {.runs_nodes = true, .runs_processes_of_node = true}};
}

}  // namespace pipeline::orchestrators

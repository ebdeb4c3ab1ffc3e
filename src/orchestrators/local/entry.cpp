#include "orchestrators/catalog/catalog.hpp"

namespace pipeline::orchestrators {

Entry local_entry() {
  return {.name = "local", .help = "as processes of this machine", .traits = {.runs_nodes = true}};
}

}  // namespace pipeline::orchestrators

#include "orchestrators/catalog/catalog.hpp"

namespace pipeline::orchestrators {

Entry slurm_entry() {
  return {.name = "slurm",
          .help = "as jobs of a Slurm cluster that shares this machine's files",
          .settings = "slurm",
          .traits = {.makes_image_files = true},
          .connection = {{.name = "host", .key = "host", .identifies_service = true},
                         {.name = "partition",
                          .key = "partition",
                          .option_help = "Slurm's partition of the jobs (default: the cluster's)"},
                         {.name = "account",
                          .key = "account",
                          .option_help = "Slurm's account that the jobs are charged to"},
                         {.name = "container_runtime", .key = "container_runtime"},
                         {.name = "within", .key = "within"},
                         {.name = "qos", .key = "qos"},
                         {.name = "constraint", .key = "constraint"},
                         {.name = "reservation", .key = "reservation"},
                         {.name = "exclude", .key = "exclude"},
                         {.name = "nice", .key = "nice", .kind = ConnectionField::Kind::number}}};
}

}  // namespace pipeline::orchestrators

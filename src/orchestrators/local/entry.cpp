#include "orchestrators/catalog/catalog.hpp"

namespace pipeline::orchestrators {

Entry local_entry() { return {.name = "local", .help = "as processes of this machine"}; }

}  // namespace pipeline::orchestrators

// The conformance suite on the test bed's Slurm cluster.
#include <cstdlib>

#include "orchestrators/slurm/slurm_orchestrator.hpp"
#include "support/conformance.hpp"

namespace pipeline::test {

INSTANTIATE_TEST_SUITE_P(Slurm, Conformance,
                         testing::Values(Place{
                             .name = "slurm",
                             .make =
                                 [](asio::io_context& loop, const fs::path& root) {
                                   setenv("SLURM_CONF", "/var/lib/pipe-slurm/slurm.conf", 1);
                                   return orchestrators::make_slurm_orchestrator(
                                       loop, {.root = root, .state = root / ".pipe"});
                                 },
                             .settings = {},
                             .root_may_write = true}),
                         [](auto& place) { return place.param.name; });

}  // namespace pipeline::test

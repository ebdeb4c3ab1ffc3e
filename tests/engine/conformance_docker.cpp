#include "orchestrators/factory.hpp"
#include "support/conformance.hpp"

namespace pipeline::test {
INSTANTIATE_TEST_SUITE_P(Docker, Conformance,
                         testing::Values(Place{
                             .name = "docker",
                             .make =
                                 [](asio::io_context& loop, const fs::path& root) {
                                   return orchestrators::make_docker_orchestrator(
                                       loop, {.root = root,
                                              .state = root / ".pipe",
                                              .run_id = "conformance"});
                                 },
                             .settings = slim()}),
                         [](auto& place) { return place.param.name; });

}  // namespace pipeline::test

#include "orchestrators/local/local_orchestrator.hpp"
#include "support/conformance.hpp"

namespace pipeline::test {
using namespace orchestrators;

INSTANTIATE_TEST_SUITE_P(Local, Conformance,
                         testing::Values(Place{
                             .name = "local",
                             .make =
                                 [](asio::io_context& loop, const fs::path& root) {
                                   return make_local_orchestrator(loop, {.root = root});
                                 },
                             .settings = {},
                             .root_may_write = true}),
                         [](auto& place) { return place.param.name; });

}  // namespace pipeline::test

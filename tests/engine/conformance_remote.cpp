// What holds for every orchestrator, with an engine that sees none of this machine's files, over
// TCP with TLS.
#include "orchestrators/factory.hpp"
#include "support/conformance.hpp"
#include "support/second_engine.hpp"

namespace pipeline::test {
namespace {

Place remote() {
  return {.name = "docker_over_tls",
          .make =
              [](asio::io_context& loop, const fs::path& root) {
                use_second_engine_over_tls();
                return orchestrators::make_docker_orchestrator(
                    loop, {.root = root, .state = root / ".pipe", .run_id = "conformance"});
              },
          .settings = slim(),
          .root_may_write = true};
}

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Conformance);
INSTANTIATE_TEST_SUITE_P(Remote, Conformance, testing::Values(remote()),
                         [](auto& place) { return place.param.name; });

}  // namespace pipeline::test

// What holds for every orchestrator, with an engine that sees this machine's files and maps its
// containers' users to others (userns-remap).
#include <cstdlib>

#include "orchestrators/factory.hpp"
#include "support/conformance.hpp"

namespace pipeline::test {
namespace {

constexpr const char* socket_file = "/run/pipe-mapped-engine/docker.sock";

Place mapped() {
  return {.name = "docker_with_mapped_users",
          .make =
              [](asio::io_context& loop, const fs::path& root) {
                setenv("DOCKER_HOST", (std::string("unix://") + socket_file).c_str(), 1);
                return orchestrators::make_docker_orchestrator(
                    loop, {.root = root, .state = root / ".pipe", .run_id = "conformance"});
              },
          .settings = slim(),
          .root_may_write = true};
}

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Conformance);
INSTANTIATE_TEST_SUITE_P(Mapped, Conformance, testing::Values(mapped()),
                         [](auto& place) { return place.param.name; });

}  // namespace pipeline::test

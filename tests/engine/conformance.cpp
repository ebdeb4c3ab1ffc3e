// The conformance suite on three kinds of engine: one that sees this machine's files,
// one that maps its containers' users to others (userns-remap), and one that sees none of the
// files, over TCP with TLS.
#include <cstdlib>
#include <functional>
#include <string>

#include "orchestrators/docker/docker_orchestrator.hpp"
#include "support/conformance.hpp"
#include "support/second_engine.hpp"

namespace pipeline::test {
namespace {

/// Returns the suite's parameter for an engine.
/// @param use sets the engine's variables in this process
/// @param has_copies the engine gets copies of the steps' files, which root can write
Place engine_place(std::string name, std::function<void()> use, bool has_copies) {
  return {.name = std::move(name),
          .make =
              [use = std::move(use)](asio::io_context& loop, const fs::path& root) {
                use();
                return orchestrators::make_docker_orchestrator(
                    loop, {.root = root, .state = root / ".pipe", .run_id = "conformance"});
              },
          .settings = slim(),
          .root_may_write = has_copies};
}

void use_mapped_engine() { setenv("DOCKER_HOST", "unix:///run/pipe-mapped-engine/docker.sock", 1); }

std::string place_name(const testing::TestParamInfo<Place>& place) { return place.param.name; }

}  // namespace

INSTANTIATE_TEST_SUITE_P(Docker, Conformance,
                         testing::Values(engine_place(
                             "docker", [] {}, false)),
                         place_name);
INSTANTIATE_TEST_SUITE_P(Mapped, Conformance,
                         testing::Values(engine_place("docker_with_mapped_users", use_mapped_engine,
                                                      true)),
                         place_name);
INSTANTIATE_TEST_SUITE_P(Remote, Conformance,
                         testing::Values(engine_place("docker_over_tls", use_second_engine_over_tls,
                                                      true)),
                         place_name);

}  // namespace pipeline::test

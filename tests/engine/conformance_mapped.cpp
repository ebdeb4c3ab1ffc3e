// What holds for every orchestrator, with an engine that sees this machine's files and maps its
// containers' users to others (userns-remap).
#include <cstdlib>

#include "support/engine_place.hpp"

namespace pipeline::test {
namespace {

void use_mapped_engine() { setenv("DOCKER_HOST", "unix:///run/pipe-mapped-engine/docker.sock", 1); }

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Conformance);
INSTANTIATE_TEST_SUITE_P(Mapped, Conformance,
                         testing::Values(engine_place("docker_with_mapped_users", use_mapped_engine,
                                                      true)),
                         [](auto& place) { return place.param.name; });

}  // namespace pipeline::test

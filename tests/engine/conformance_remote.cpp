// What holds for every orchestrator, with an engine that sees none of this machine's files, over
// TCP with TLS.
#include "support/engine_place.hpp"
#include "support/second_engine.hpp"

namespace pipeline::test {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Conformance);
INSTANTIATE_TEST_SUITE_P(Remote, Conformance,
                         testing::Values(engine_place("docker_over_tls", use_second_engine_over_tls,
                                                      true)),
                         [](auto& place) { return place.param.name; });

}  // namespace pipeline::test

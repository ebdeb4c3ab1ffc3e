#include "support/engine_place.hpp"

namespace pipeline::test {

INSTANTIATE_TEST_SUITE_P(Docker, Conformance,
                         testing::Values(engine_place(
                             "docker", [] {}, false)),
                         [](auto& place) { return place.param.name; });

}  // namespace pipeline::test

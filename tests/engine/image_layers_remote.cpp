// Two engines that share nothing make equal layers of equal locks.
#include <memory>

#include "engine/locked_packages.hpp"
#include "support/second_engine.hpp"

namespace pipeline::docker {
namespace {

TEST_F(LayersTest, two_engines_make_equal_layers) {
  const std::vector packages{locked("click", "8.1.7"), locked("colorama", "0.4.6"),
                             locked("six", "1.16.0", heavy), locked("tabulate", "0.9.0", heavier)};
  DockerSettings settings;
  settings.build_config.build_options.network = "host";  // The second engine has no other.
  settings.build_config.build_options.no_cache = true;
  const auto build = [&] { return layers(build_locked(packages, settings)); };
  auto here = build();
  test::use_second_engine_over_tls();
  auto other = std::make_unique<EngineApi>(loop, find_endpoint());
  engine.swap(other);
  const auto there = build();
  engine.swap(other);
  // Docker 20.10 writes a layer's files in another order if another build makes an equal parent of
  // it meanwhile, as other tests do on the first engine.
  for (int again = 0; again < 4 && here != there; ++again) here = build();
  EXPECT_EQ(here, there);
  EXPECT_EQ(there.size(), 4U);
}

}  // namespace
}  // namespace pipeline::docker

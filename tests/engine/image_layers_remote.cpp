// Two engines that share nothing make equal layers of equal locks.
#include "engine/locked_packages.hpp"
#include "support/second_engine.hpp"

namespace pipeline::docker {
namespace {

class RemoteLayers : public LayersTest {};

TEST_F(RemoteLayers, two_engines_make_equal_layers) {
  // The sizes are pretended: a package that is `heavy` or `heavier` gets a layer of its own.
  const std::vector packages{locked("click", "8.1.7"), locked("colorama", "0.4.6"),
                             locked("six", "1.16.0", heavy), locked("tabulate", "0.9.0", heavier)};
  DockerSettings settings;
  settings.build_config.build_options.network = "host";  // The second engine has no other.
  settings.build_config.build_options.no_cache = true;
  const auto local = layers(build_locked(packages, settings));
  test::use_second_engine_over_tls();
  engine = std::make_unique<EngineApi>(loop, find_endpoint());
  const auto remote = layers(build_locked(packages, settings));
  EXPECT_EQ(local, remote);
  EXPECT_EQ(local.size(), 4U) << "mount points, two heavy packages, and all light ones";
}

}  // namespace
}  // namespace pipeline::docker

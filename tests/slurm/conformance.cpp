// The conformance suite on the test bed's Slurm cluster: in virtual environments and, where
// Charliecloud is installed, in containers.
#include <cstdlib>

#include "orchestrators/slurm/slurm_orchestrator.hpp"
#include "support/conformance.hpp"

namespace pipeline::test {
namespace {

Place place(std::string name, StringMap connection, Settings settings) {
  return {.name = std::move(name),
          .make =
              [connection](asio::io_context& loop, const fs::path& root) {
                setenv("SLURM_CONF", "/var/lib/pipe-slurm/slurm.conf", 0);
                return orchestrators::make_slurm_orchestrator(
                    loop, {.root = root, .state = root / ".pipe", .connection = connection});
              },
          .settings = std::move(settings),
          .root_may_write = true};
}

std::vector<Place> places() {
  std::vector<Place> all{place("slurm", {}, {})};
  if (fs::exists("/usr/bin/ch-run") && fs::exists("/usr/bin/mksquashfs"))
    all.push_back(place("images", {{"container_runtime", "charliecloud"}}, slim()));
  return all;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Slurm, Conformance, testing::ValuesIn(places()),
                         [](auto& place) { return place.param.name; });

}  // namespace pipeline::test

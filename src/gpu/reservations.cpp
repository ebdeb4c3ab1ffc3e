#include "gpu/reservations.hpp"

#include <unistd.h>

#include "core/error.hpp"

namespace pipeline::gpu {

Reservations read_reservations(const std::vector<Unit>& units) {
  Reservations found;
  auto folder = LockFolder::existing();
  if (!folder) return found;
  for (int tries = 0; tries < 2000; ++tries, ::usleep(1000)) {
    const auto session = folder->try_enter();
    if (!session) continue;
    for (const auto& unit : units)
      if (auto holder = session->holder(unit.uuid))
        found.holders.emplace(unit.uuid, std::move(*holder));
    found.queue = session->queue();
    return found;
  }
  throw core::EnvironmentError(
      "the GPU reservations in " + LockFolder::default_path().string() +
          " have been locked for 2 seconds",
      {"a `pipe` that was stopped (Ctrl-Z, SIGSTOP) may hold them: `fuser -v " +
       (LockFolder::default_path() / "mutex").string() + "` names it"});
}

}  // namespace pipeline::gpu

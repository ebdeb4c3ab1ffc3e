#include "store/driver_locks.hpp"

#include <unistd.h>

#include <climits>

#include "core/file.hpp"

namespace pipeline::store {
namespace {

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return {};
  std::string host(name);
  std::erase(host, ':');
  return host;
}

}  // namespace

DriverLocks::DriverLocks(const StatePaths& paths)
    : paths_(paths), is_local_(is_local_file_system(paths.folder())) {}

Driver DriverLocks::claim(const RunRecord& run) {
  auto driver = run.driver;
  if (run.status != RunStatus::running || driver.has_lease() ||
      driver.process.started != ProcessId::self().started)
    return driver;
  auto& hold = held_[run.id];
  // Only a process that removes an earlier driver's remains can hold the lock now, and briefly.
  if (!hold.lock)
    hold.lock =
        StateLock::take(paths_.folder(), StateLock::driver_of(run.id), StateLock::Kind::exclusive);
  driver.probe = is_local_ && hold.lock->locks() ? LivenessProbe::lock : LivenessProbe::heartbeat;
  if (driver.probe == LivenessProbe::heartbeat && !hold.heartbeat)
    hold.heartbeat = std::make_unique<Heartbeat>(paths_.heartbeat_file(run.id));
  driver.host = host_name();
  return driver;
}

Liveness DriverLocks::liveness(const RunRecord& run) const {
  const auto& [process, lease, probe, host] = run.driver;
  if (run.driver.has_lease())
    return Heartbeat::is_fresh(paths_.heartbeat_file(run.id)) ? Liveness::alive : Liveness::unknown;
  if (StateLock::is_held(paths_.folder(), StateLock::driver_of(run.id))) return Liveness::alive;
  const bool runs_on_this_machine = process.is_of_this_namespace() && process.is_alive();
  switch (probe) {
    case LivenessProbe::process: break;
    // The kernel that held the lock is this one, or one that has since shut down.
    case LivenessProbe::lock:
      if (process.is_of_this_boot() && StateLock::is_hidden(paths_.folder())) break;
      return process.is_of_this_boot() || is_local_ ? Liveness::dead : Liveness::unknown;
    case LivenessProbe::heartbeat:
      if (runs_on_this_machine || Heartbeat::is_fresh(paths_.heartbeat_file(run.id)))
        return Liveness::alive;
  }
  if (process.is_of_this_namespace())
    return runs_on_this_machine ? Liveness::alive : Liveness::dead;
  return Liveness::unknown;
}

void DriverLocks::record_heartbeat(const std::string& run) const {
  const auto file = paths_.heartbeat_file(run);
  core::make_folders(file.parent_path());
  core::write_file_atomically(file, "");
}

std::optional<StateLock> DriverLocks::hold(const std::string& run) const {
  return StateLock::try_take(paths_.folder(), StateLock::driver_of(run),
                             StateLock::Kind::exclusive);
}

}  // namespace pipeline::store

#include <unistd.h>

#include <climits>

#include "core/file.hpp"
#include "store/run_store.hpp"
#include "store/run_store_implementation.hpp"

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

/// Takes the run's lock if this process drives it. Called in the transaction that records the run
/// as running, so that no other process finds it running and unlocked.
Driver RunStore::Implementation::drive(const RunRecord& run) {
  auto driver = run.driver;
  if (run.status != RunStatus::running || driver.is_elsewhere() ||
      driver.process.started != ProcessId::self().started)
    return driver;
  auto& hold = held[run.id];
  // Only a process that removes the remains of an earlier driver can hold it now, and only briefly.
  if (!hold.lock)
    hold.lock = StateLock::take(folder, StateLock::driver_of(run.id), StateLock::Kind::exclusive);
  driver.sign = is_local && hold.lock->locks() ? SignOfLife::lock : SignOfLife::heartbeat;
  if (driver.sign == SignOfLife::heartbeat && !hold.heartbeat)
    hold.heartbeat = std::make_unique<Heartbeat>(heartbeat(run.id));
  driver.host = host_name();
  return driver;
}

Liveness RunStore::liveness(const RunRecord& run) const {
  const auto& [process, lease, sign, host] = run.driver;
  if (run.driver.is_elsewhere())
    return Heartbeat::is_fresh(self_->heartbeat(run.id)) ? Liveness::alive : Liveness::unknown;
  if (StateLock::is_held(folder(), StateLock::driver_of(run.id))) return Liveness::alive;
  const bool lives_here = process.is_of_this_namespace() && process.alive();
  switch (sign) {
    case SignOfLife::process: break;
    // The kernel that held the lock is this one, or one that has since shut down.
    case SignOfLife::lock:
      return process.is_of_this_boot() || self_->is_local ? Liveness::dead : Liveness::unknown;
    case SignOfLife::heartbeat:
      if (lives_here || Heartbeat::is_fresh(self_->heartbeat(run.id))) return Liveness::alive;
  }
  if (process.is_of_this_namespace()) return lives_here ? Liveness::alive : Liveness::dead;
  return Liveness::unknown;
}

void RunStore::note_life(const std::string& run) const {
  const auto file = self_->heartbeat(run);
  core::make_folders(file.parent_path());
  core::write_file_atomically(file, "");
}

std::optional<StateLock> RunStore::hold(const std::string& run) const {
  return StateLock::try_take(folder(), StateLock::driver_of(run), StateLock::Kind::exclusive);
}

StateLock RunStore::keep_artifacts(const std::function<void()>& on_wait) const {
  if (auto lock = StateLock::try_take(folder(), StateLock::artifacts, StateLock::Kind::shared))
    return std::move(*lock);
  if (on_wait) on_wait();
  return StateLock::take(folder(), StateLock::artifacts, StateLock::Kind::shared);
}

std::optional<StateLock> RunStore::hold_artifacts() const {
  return StateLock::try_take(folder(), StateLock::artifacts, StateLock::Kind::exclusive);
}

}  // namespace pipeline::store

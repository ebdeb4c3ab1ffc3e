/// @file
/// The locks and heartbeats that show which runs have a live driver.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "store/records.hpp"
#include "store/state_lock.hpp"
#include "store/state_paths.hpp"

namespace pipeline::store {

/// The liveness of a run's driver, as seen from this machine. A driver of unknown liveness must not
/// be treated as dead.
enum class Liveness { alive, dead, unknown };

class DriverLocks {
 public:
  /// Keeps a reference to `paths`.
  explicit DriverLocks(const StatePaths& paths);

  /// Takes the run's lock if the run is running and this process drives it, and keeps it until
  /// release() or destruction. Call it in the transaction that records the run as running, so that
  /// no other process finds the run both running and unlocked.
  /// @return the run's driver, with its liveness probe
  Driver claim(const RunRecord& run);
  void release(const std::string& run) { held_.erase(run); }

  /// Returns the liveness of the driver of a run that is recorded as running.
  Liveness liveness(const RunRecord& run) const;
  /// Records that the driver of a run, of which this folder has a copy, has just been heard from.
  void record_heartbeat(const std::string& run) const;
  /// Prevents drivers from resuming this run while its remains are removed; they wait meanwhile.
  /// Returns nothing while the run has a driver.
  std::optional<StateLock> hold(const std::string& run) const;

 private:
  /// Marks a run as driven by this process.
  struct Hold {
    std::optional<StateLock> lock;
    std::unique_ptr<Heartbeat> heartbeat;
  };
  const StatePaths& paths_;
  bool is_local_;
  std::map<std::string, Hold> held_;  ///< Keyed by run.
};

}  // namespace pipeline::store

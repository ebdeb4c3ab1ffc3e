/// @file
/// The drivers of runs: their liveness, and the progress of runs whose drivers share no files with
/// this machine. Checks local processes, and queries clusters and remote stores.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "kubernetes_api/kubeconfig.hpp"
#include "remote_driver/driver_context.hpp"
#include "store/run_store.hpp"

namespace pipeline::driver {

class Drivers {
 public:
  Drivers(remote_driver::DriverContext context, store::RunStore& store);
  ~Drivers();

  /// Updates the record to the run's progress. Costs nothing if its driver shares the state folder.
  void update(store::RunRecord& run);
  /// For a run whose Lease this process holds: waits until the pod of the driver is gone, downloads
  /// everything that the driver has saved to the replica, and removes the replica.
  void retrieve(store::RunRecord& run);

  using Liveness = store::Liveness;
  /// Returns the liveness of the driver of a run that is recorded as running. A cluster is queried
  /// at most once in a few seconds. Also updates the record with what the driver has saved to the
  /// replica; afterwards the run may have ended.
  Liveness liveness_of(store::RunRecord& run);
  /// Returns true if the run has a living driver, or a driver of unknown liveness. If it returns
  /// false, the record is as the driver has left it.
  bool goes_on(store::RunRecord& run);
  /// Returns `the Job x in the namespace y of context z: its pod w`. If no pod drives the run, the
  /// text says why the pod does not start, or how the last pod has failed.
  std::string describe(store::RunRecord& run);
  /// Returns the error for a run for which liveness_of() has just returned that the liveness is
  /// unknown.
  core::EnvironmentError liveness_error(const store::RunRecord& run) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Answer {
    Liveness liveness;
    Clock::time_point asked;
    std::string why_unknown;  ///< Empty if the liveness is known.
  };
  /// A cluster that does not respond.
  struct SilentCluster {
    Clock::time_point asked;
    std::string error;  ///< The error of its last request.
  };
  struct RemoteReplica;
  Liveness ask(const store::RunRecord& run);
  RemoteReplica& replica_of(const store::RunRecord& run);
  void download_progress(store::RunRecord& run, bool is_gone);
  void download(store::RunRecord& run, RemoteReplica& remote);

  remote_driver::DriverContext context_;
  store::RunStore& store_;
  std::map<std::string, std::unique_ptr<RemoteReplica>> replicas_;  ///< Keyed by run.
  std::map<std::string, Answer> answers_;                           ///< Keyed by run.
  /// Keyed by context and namespace.
  std::map<std::pair<std::string, std::string>, SilentCluster> silent_clusters_;
  std::string why_unknown_;  ///< Why the liveness of the last driver was unknown.
};

/// Returns how to reach the cluster of the Lease.
kubernetes_api::AccessOptions cluster_of(const store::LeaseId& lease);

/// Throws InputError if the run's Job is not called as a driver of this run: the record in a folder
/// that somebody else has made may name any Job of the user's.
void require_own_job(const store::RunRecord& run);

/// Returns `process 1234`, `process 1234 on the machine m`, or `the Job x in the namespace y`.
std::string name_of(const store::Driver& driver);

}  // namespace pipeline::driver

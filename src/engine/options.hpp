/// @file
/// The options of a run or a plan.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "async/task.hpp"
#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::gpu {
class Machine;
}

namespace pipeline::engine {

class RemoteCache;

struct EngineOptions {
  unsigned jobs = 0;  ///< Maximum number of concurrent attempts; 0: the number of CPUs.
  bool use_cache = true;
  std::vector<std::string> force = {};  ///< Steps that run although they have a result.
  std::vector<std::string> from = {};   ///< As `force`, with all steps that depend on them.
  bool resume = false;    ///< `run_id` is an interrupted run: its results stay, and its running
                          ///< attempts are joined.
  std::string only_step;  ///< Run only this step and its dependencies; empty: all.
  std::string run_id;
  std::string git_commit;  ///< Recorded with the run; empty: no repository.
  bool git_dirty = false;
  /// The run's request for the fingerprint (run_fingerprint.hpp), as a text: the file and every
  /// relevant option; empty: no fingerprint is stored.
  std::string identity;
  /// Files that the spec was made from, besides the steps' code.
  std::vector<std::filesystem::path> sources;
  /// Called when all steps have succeeded; returns further files that determine the run, such as
  /// those that the run itself has written. Returns nothing if one of these files has changed
  /// meanwhile.
  std::function<std::optional<std::vector<std::filesystem::path>>()> final_sources = {};
  gpu::Machine* machine = nullptr;      ///< NVML if it is in use already; must outlive the run.
  RemoteCache* remote_cache = nullptr;  ///< Must outlive the run; null: none.
  /// Awaited before the remains of an attempt outside of this process, such as a Job, are removed:
  /// once it returns, a driver on another machine could continue the run with the attempt's
  /// outputs, unless they could not be saved there. Empty: a later driver has the same run store
  /// and files.
  std::function<async::Task<>()> wait_until_persisted = {};
  store::Driver driver = {};  ///< Names the Lease in the cluster that this process holds. Empty:
                              ///< the process itself is recorded as the driver. If `resume` is
                              ///< set, the run may have this driver already.
  /// Notifies people, besides the events, that a step with `wait` asks whether it may begin. Empty:
  /// no notification.
  std::function<async::Task<>(std::string step, std::string question)> notify_of_question = {};
  /// A run that a fingerprint shows to be unchanged reports its steps one by one.
  bool reports_reused_steps = true;
  /// Current time, to detect files that changed too recently for a fingerprint to trust them.
  store::WallClock now = std::chrono::system_clock::now;
};

}  // namespace pipeline::engine

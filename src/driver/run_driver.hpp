/// @file
/// Drives a run to its end: a new run, or one that continues.
#pragma once

#include <future>
#include <optional>
#include <string>

#include "driver/background.hpp"
#include "driver/detached_record.hpp"
#include "driver/event_log.hpp"
#include "driver/run_observer.hpp"
#include "driver/run_results.hpp"
#include "driver/session.hpp"
#include "remote_driver/run_uploader.hpp"
#include "vcs/repository.hpp"

namespace pipeline::driver {

enum class RunMode {
  fresh,      ///< A new run.
  resume,     ///< Continues a run of this machine that has no driver any more.
  take_over,  ///< Continues here a run that was handed to a driver in a cluster.
  cluster,    ///< Continues a run as its driver in the cluster.
};

struct RunRequest {
  RunMode mode = RunMode::fresh;
  std::string run;                     ///< The run to continue.
  DetachedRecord* detached = nullptr;  ///< The record of a run that was handed to a cluster.
  Background* background = nullptr;    ///< Leaves the terminal once the run has begun.
  remote_driver::RunUploader* uploader = nullptr;  ///< Saves the run, in the cluster.
  core::CancelSource* stop = nullptr;  ///< Stops the run, as the observer's source does.
  bool reports_reused_steps = false;   ///< Emits an event for each reused step of any pipeline.
};

class RunDriver {
 public:
  /// Opens the session of the run. Keeps references to the workspace, the observer and the objects
  /// of the request.
  RunDriver(Workspace& workspace, RunRequest request, RunObserver& observer);

  /// Drives the run to its end, once. A failed run is not an exception. Throws InputError and
  /// EnvironmentError for a run that cannot begin, and Interrupted for one that is stopped before
  /// it has begun.
  RunEnd run();

  Session& session() { return session_; }

 private:
  /// Passes events on to the observer, and records them if the run has an event log. At the first
  /// event of the run, leaves the terminal for a driver in the background.
  class Events final : public EventSink {
   public:
    explicit Events(RunDriver& driver) : driver_(driver) {}
    void emit(const Event& event) override;
    std::size_t steps = 0;  ///< Number of the run's steps.

   private:
    RunDriver& driver_;
  };

  engine::EngineOptions options();
  void open_log();
  std::optional<engine::RunSummary> reuse_whole_run(engine::EngineOptions options);
  /// Makes the checks that would otherwise fail only later, and records the invocation.
  void prepare(engine::EngineOptions& options);
  /// Runs the pipeline, and sends the notifications.
  engine::RunSummary drive(engine::EngineOptions& options);
  /// Returns the run's end, and adds it to the event log.
  RunEnd conclude(const engine::RunSummary& outcome);
  bool is_in_cluster() const { return request_.mode == RunMode::cluster; }

  Workspace& workspace_;
  const RunRequest request_;
  RunObserver& observer_;
  /// State of the repository that has the pipeline file; not valid in the cluster.
  std::future<std::optional<vcs::SourceState>> source_state_;
  Session session_;
  Events events_{*this};
  std::optional<EventLog> log_;
};

}  // namespace pipeline::driver

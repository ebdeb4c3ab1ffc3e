/// @file
/// Runs one step's attempts until one succeeds or there are no more retries.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/semaphore.hpp"
#include "engine/attempt/attempt.hpp"
#include "engine/cache/results.hpp"
#include "engine/gpu/gpu_reserver.hpp"
#include "engine/run/job_slots.hpp"
#include "engine/run/journal.hpp"
#include "engine/run/step_limits.hpp"
#include "engine/run/wait_meter.hpp"

namespace pipeline::engine {

/// A step that is ready to run.
struct ReadyStep {
  const StepSpec& spec;
  const std::string& key;
  /// Computes `key` again if another step has made an input again since. Returns true if it
  /// differs.
  std::function<bool()> renew_key;
  const orchestrators::Environment& environment;
  WaitMeter& waits;     ///< Begins when everything that the step takes has been made.
  std::size_t urgency;  ///< Rank among the steps that wait for a slot; smaller goes first.
  const ResumePoint*
      resume_point;          ///< Null if the step had not begun when the run was interrupted.
  OutputsOf outputs_of;      ///< Returns the outputs of the steps that it takes its inputs from.
  core::CancelSource& stop;  ///< Ends the step's attempts.
};

class StepRunner {
 public:
  StepRunner(const RunContext& context, Journal& journal, JobSlots& slots, GpuReserver& gpus,
             Results& results);

  /// Runs the step until an attempt succeeds, the retries are used up, or the run is stopped. The
  /// failure is in the outcome. Throws EnvironmentError for failures of this machine.
  /// @param counts receives the number of attempts, also if this throws
  async::Task<AttemptOutcome> run(const ReadyStep& step, AttemptCounts& counts);

 private:
  /// Returns true if an earlier driver's last attempt may still run and has the step's current key,
  /// so that it is joined. Discards an attempt with another key.
  async::Task<bool> joins(const ReadyStep& step);
  /// Waits for a job slot and the step's GPUs. Returns and holds nothing if the run is stopped.
  /// @param avoided UUIDs of GPUs that are used only if no others are left
  async::Task<std::optional<GpuReservation>> reserve(const ReadyStep& step,
                                                     const std::set<std::string>& avoided);
  async::Task<AttemptOutcome> try_once(const ReadyStep& step, AttemptOptions attempt,
                                       GpuReservation gpus);

  const RunContext& context_;
  orchestrators::Routes& routes_;
  Journal& journal_;
  JobSlots& slots_;
  GpuReserver& gpus_;
  StepLimits limits_;
  Results& results_;
  WorkFolders folders_;
  Downloads downloads_;
  std::set<core::Digest> checked_;    ///< Artifacts that this run has made or read completely.
  std::vector<std::string> damaged_;  ///< See AttemptContext::damaged.
};

}  // namespace pipeline::engine

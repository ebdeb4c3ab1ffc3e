/// @file
/// Persists the events of a run, then publishes and counts them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "engine/graph/gather.hpp"
#include "engine/options.hpp"
#include "engine/types.hpp"

namespace pipeline::engine {

/// A run that a fingerprint shows to be unchanged.
struct UnchangedRun {
  std::string run;
  std::size_t steps = 0, skipped = 0;
  std::vector<std::string> tags;  ///< The pipeline's tags.
};

/// An attempt that begins.
struct AttemptStart {
  unsigned number;  ///< From 1.
  const std::string& environment;
  std::optional<Bytes> memory;  ///< The attempt's limit, if the orchestrator enforces it.
  const std::vector<orchestrators::AssignedGpu>& gpus;
};

/// All functions throw EnvironmentError if the store cannot be written; nothing is published then.
/// reused() and succeeded() only collect: the next write of any kind commits what they have
/// collected together with its own.
class Journal {
 public:
  Journal(store::RunStore& store, const store::ArtifactStore& artifacts, EventSink& events,
          const PipelineSpec& pipeline, const EngineOptions& options);

  /// Records the run.
  /// @param versions see DataInputs::current_versions()
  void run_began(const std::string& orchestrator, const std::vector<const StepSpec*>& steps,
                 const std::string& versions);
  /// Records that the run is resumed; steps that have succeeded stay as they are.
  /// @return the steps that had begun and have not succeeded
  std::map<std::string, ResumePoint> run_resumed(const std::string& orchestrator,
                                                 const std::vector<const StepSpec*>& steps);
  /// Records that the steps were replaced by their instances, or that the next round has begun.
  /// @param steps one step, or those that are repeated together, the first of which is reported
  /// @param round the round, from 0, if they are repeated
  /// @return the instances that had begun before the run was interrupted, and have not succeeded
  std::map<std::string, ResumePoint> expanded(const std::vector<const StepSpec*>& steps,
                                              const std::vector<const StepSpec*>& instances,
                                              std::optional<unsigned> round = std::nullopt);
  /// Records that an attempt begins. @return the record to pass to attempt_ended()
  store::AttemptRecord attempt_began(const StepSpec& step, const std::string& key,
                                     const AttemptStart& start);
  /// Persists a failed attempt. A successful one is persisted together with its step by
  /// succeeded(), so that no driver finds one without the other.
  store::AttemptRecord attempt_ended(store::AttemptRecord record, Clock::time_point start,
                                     const AttemptOutcome& outcome,
                                     const std::optional<Failure>& failure);
  void retried(const StepSpec& step, unsigned number, const Failure& failure, const Retry& retry);
  /// Collects that a step is reused.
  void reused(Reuse reuse);
  /// Collects that a step has succeeded.
  void succeeded(const StepSpec& step, const StepKey& key, const AttemptOutcome& outcome,
                 const AttemptCounts& counts, InputOrigins origins);
  /// Records that a step, which has ended with this status, runs again in this run.
  /// @return the number of its attempts so far
  unsigned restarted(const StepSpec& step, StepStatus ended_as);
  /// Persists what reused() and succeeded() have collected.
  void flush();
  /// Calls flush() if there are reused steps, which would otherwise wait for the next write.
  void flush_reused();
  /// Records that the step failed or was cancelled; `lost` are the steps that can no longer run.
  void failed(const StepSpec& step, Failure failure, const std::string& key,
              const AttemptCounts& counts, const std::vector<const StepSpec*>& lost);
  /// Records the steps that can no longer run because this one failed, was cancelled or skipped.
  void dependents_lost(const StepSpec& step, StepStatus status,
                       const std::vector<const StepSpec*>& lost);
  /// Records a step that its conditions skip, and those that depend on it.
  void skipped(const StepSpec& step, const std::string& reason,
               const std::vector<const StepSpec*>& lost);
  /// Records steps that were never started because of a failure. @param status skipped or cancelled
  void left_out(const std::vector<const StepSpec*>& steps, const std::string& reason,
                StepStatus status);
  /// Notes that outputs could not be copied to where the user wants them: the run fails.
  void lacks_copies() { summary_.lacks_copies = true; }
  /// @param interrupted the user has stopped the run
  RunSummary run_ended(bool interrupted);

  /// Records a whole run that reuses every step of an earlier one, and publishes its events, those
  /// of steps only if `options.reports_reused_steps`. Returns nothing, and records nothing, if the
  /// earlier run is gone.
  /// @param began when the run began
  static std::optional<RunSummary> reuse_whole_run(store::RunStore& store, EventSink& events,
                                                   const EngineOptions& options,
                                                   const UnchangedRun& earlier,
                                                   Clock::time_point began);

  const std::string& run_id() const { return record_.id; }

 private:
  struct Success {
    store::StepRecord step;
    store::AttemptRecord attempt;
    std::vector<store::TaskRecord> tasks;
    std::vector<store::KeyPart> parts;
    InputOrigins origins;
    const StepSpec* spec;
    std::shared_ptr<const void> key_lock;
  };
  /// Commits the writes of `write` together with what was collected, and publishes the latter.
  void commit(const std::function<void()>& write);
  void put(const Reuse& reuse);
  void put(const Success& success);
  void announce(const Reuse& reuse);
  void announce(const Success& success);
  /// Why steps are left out: a failure or a stop, or a condition.
  enum class LeftOutBy { failure, condition };
  void put_left_out(const std::vector<const StepSpec*>& steps, const std::string& reason,
                    StepStatus status, LeftOutBy cause);
  /// Publishes outputs in the state folder under the names that the step gives them, unless names
  /// are kept in the remote cache.
  void publish(const StepSpec& step, const std::string& run,
               const std::vector<store::OutputRecord>& outputs);
  /// Makes the step pending again, unless it has succeeded before the run was interrupted.
  std::optional<ResumePoint> resume_step(const StepSpec& step);
  void announce_start(const std::vector<const StepSpec*>& steps);
  store::StepRecord record_of(const StepSpec& step, StepStatus status,
                              const std::string& key = {}) const;
  store::StepRecord record_of(const StepSpec& step, StepStatus status, const std::string& key,
                              const AttemptCounts& counts) const;

  store::RunStore& store_;
  const store::ArtifactStore& artifacts_;
  EventSink& events_;
  store::RunRecord record_;
  const bool publishes_here_;  ///< Outputs are published in the state folder, not the remote cache.
  const bool is_resumed_;
  const std::vector<std::string> headline_;
  RunSummary summary_{};
  std::size_t tolerated_ = 0;  ///< Failed steps with `allow_failure`; not among summary_.failed.
  /// Steps of a resumed run that it has not reached yet.
  std::map<std::string, store::StepRecord> earlier_;
  /// Ended steps that are not persisted yet. A step comes before those that depend on it.
  std::vector<std::variant<Reuse, Success>> ended_;
  bool has_reused_ = false;  ///< `ended_` has a reused step.
  Clock::time_point began_ = Clock::now();
};

}  // namespace pipeline::engine

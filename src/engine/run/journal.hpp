/// @file
/// Persists the events of a run, then publishes and counts them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/attempt/attempt.hpp"
#include "engine/cache/decision.hpp"
#include "engine/clock.hpp"

namespace pipeline::engine {

/// The next attempt after a failed one.
struct Retry {
  std::chrono::milliseconds delay;
  std::optional<Bytes> memory = {};  ///< Its limit, if it is higher than the failed attempt's.
};

/// When a step began, and how often it was tried.
struct AttemptCounts {
  WallTime started = wall_now();
  Clock::time_point start = Clock::now();
  unsigned attempts = 0;
  unsigned failures = 0;       ///< Number of attempts that failed because of the step.
  unsigned interruptions = 0;  ///< Number of attempts that ended because of the infrastructure.
  std::string image = {};      ///< What the last attempt ran in, if it has ended.
};

/// The progress of a step when its run was interrupted.
struct ResumePoint {
  AttemptCounts counts;
  bool is_open = false;              ///< The last attempt has no recorded end.
  std::string key;                   ///< Key of the step at that time.
  std::optional<Bytes> memory = {};  ///< The last attempt's limit.
  bool is_out_of_memory = false;     ///< The last attempt was ended by that limit.
};

/// A step that is reused from an earlier success.
struct Reuse {
  const StepSpec* step;
  store::CacheEntry entry;
};

/// Every call throws EnvironmentError if the store cannot be written; nothing is published then.
class Journal {
 public:
  Journal(store::RunStore& runs, const store::ArtifactStore& artifacts, EventSink& events,
          const PipelineSpec& pipeline, const EngineOptions& options);

  void run_began(const std::string& orchestrator, const std::vector<const StepSpec*>& steps);
  /// Records that the run is resumed; steps that have succeeded stay as they are.
  /// @return the steps that had begun and have not succeeded
  std::map<std::string, ResumePoint> run_resumed(const std::string& orchestrator,
                                                 const std::vector<const StepSpec*>& steps);
  /// Records that the steps have become their instances, or those of another round.
  /// @param steps one, or those that are repeated together, the first of which is reported
  /// @param round the round, from 0, if they are repeated
  /// @return the instances that had begun before the run was interrupted, and have not succeeded
  std::map<std::string, ResumePoint> expanded(const std::vector<const StepSpec*>& steps,
                                              const std::vector<const StepSpec*>& instances,
                                              std::optional<unsigned> round = std::nullopt);
  /// @param memory the attempt's limit, if the orchestrator enforces it
  /// @return the record to pass to attempt_ended()
  store::AttemptRecord attempt_began(const StepSpec& step, const std::string& key, unsigned number,
                                     const std::string& environment,
                                     const std::optional<Bytes>& memory,
                                     const std::vector<orchestrators::AssignedGpu>& gpus);
  /// Persists a failed attempt. A successful one is persisted together with its step by
  /// succeeded(), so that no driver finds one without the other.
  store::AttemptRecord attempt_ended(store::AttemptRecord record, Clock::time_point start,
                                     const AttemptOutcome& outcome,
                                     const std::optional<Failure>& failure);
  void retried(const StepSpec& step, unsigned number, const Failure& failure, const Retry& retry);
  void reused(const std::vector<Reuse>& steps);
  void succeeded(const StepSpec& step, const StepKey& key, const AttemptOutcome& outcome,
                 const AttemptCounts& counts, InputOrigins origins);
  /// Persists the pending successes.
  void flush();
  /// Records that the step failed or was cancelled; `lost` are the steps that can no longer run.
  void failed(const StepSpec& step, Failure failure, const std::string& key,
              const AttemptCounts& counts, const std::vector<const StepSpec*>& lost);
  /// Records the steps that can no longer run because this one failed, was cancelled or skipped.
  void lost(const StepSpec& step, StepStatus status, const std::vector<const StepSpec*>& lost);
  /// Records steps that were skipped by their conditions, and those that depend on them.
  void skipped(const StepSpec& step, const std::string& reason,
               const std::vector<const StepSpec*>& lost);
  /// Records steps that were never started because of a failure. @param status skipped or cancelled
  void left_out(const std::vector<const StepSpec*>& steps, const std::string& reason,
                StepStatus status);
  RunSummary run_ended(bool interrupted);

  const std::string& run_id() const { return record_.id; }

 private:
  struct Success {
    store::StepRecord step;
    store::AttemptRecord attempt;
    std::vector<store::KeyPart> parts;
    InputOrigins origins;
    const StepSpec* spec;
  };
  /// Commits the writes of `write` together with the pending successes.
  void commit(const std::function<void()>& write);
  void put_left_out(const std::vector<const StepSpec*>& steps, const std::string& reason,
                    StepStatus status, bool is_failure);
  /// Publishes outputs under the names that the step gives them, unless the remote cache has the
  /// names.
  void publish(const StepSpec& step, const std::string& run,
               const std::vector<store::OutputRecord>& outputs);
  /// Makes the step pending again, unless it has succeeded before the run was interrupted.
  std::optional<ResumePoint> resume_step(const StepSpec& step);
  void announce_start(const std::vector<const StepSpec*>& steps);
  store::StepRecord record_of(const StepSpec& step, StepStatus status,
                              const std::string& key = {}) const;
  store::StepRecord record_of(const StepSpec& step, StepStatus status, const std::string& key,
                              const AttemptCounts& counts) const;

  store::RunStore& runs_;
  const store::ArtifactStore& artifacts_;
  EventSink& events_;
  store::RunRecord record_;
  const bool publishes_here_;  ///< Names are those of the state folder.
  const bool is_resumed_;
  RunSummary summary_{};
  /// Of a resumed run, by step: those that it has not come to yet.
  std::map<std::string, store::StepRecord> earlier_;
  std::vector<Success> unstored_;
  Clock::time_point began_ = Clock::now();
};

}  // namespace pipeline::engine

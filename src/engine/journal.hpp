/// @file
/// What happens in a run: stored first, then told to others, and counted.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/attempt.hpp"
#include "engine/clock.hpp"
#include "engine/decision.hpp"

namespace pipeline::engine {

/// When a step began, and how often it was tried.
struct AttemptCounts {
  WallTime started = wall_now();
  Clock::time_point start = Clock::now();
  unsigned attempts = 0;
  unsigned failures = 0;       ///< Attempts that failed for a fault of the step.
  unsigned interruptions = 0;  ///< Attempts that ended for a fault of the infrastructure.
};

/// How far a step had come when its run was cut off.
struct ResumePoint {
  AttemptCounts counts;
  bool is_open = false;  ///< The last attempt has no end.
  std::string key;       ///< Of the step as it was then.
};

/// A step that an earlier success spares.
struct Reuse {
  const StepSpec* step;
  store::CacheEntry entry;
};

/// Every call throws EnvironmentError if the store cannot be written; then nothing was told.
/// A success is stored with what is stored next, at the latest by flush(), and told then: the next
/// step usually starts at once, and one commit costs half of two.
class Journal {
 public:
  Journal(store::RunStore& runs, EventSink& events, const PipelineSpec& pipeline,
          const RunOptions& options);

  void run_began(const std::string& orchestrator, const std::vector<const StepSpec*>& steps);
  /// The run was there before; steps that have succeeded stay as they are.
  /// @return the steps that had begun, and have not succeeded
  std::map<std::string, ResumePoint> run_resumed(const std::string& orchestrator,
                                                 const std::vector<const StepSpec*>& steps);
  /// @return the record to give to attempt_ended()
  store::AttemptRecord attempt_began(const StepSpec& step, const std::string& key, unsigned number,
                                     const std::string& environment,
                                     const std::vector<orchestrators::AssignedGpu>& gpus);
  /// Stores a failed attempt; a good one is stored with its step, by succeeded(), so that no driver
  /// finds the one without the other.
  store::AttemptRecord attempt_ended(store::AttemptRecord record, Clock::time_point start,
                                     const std::optional<int>& exit_code,
                                     const std::optional<Failure>& failure);
  void retried(const StepSpec& step, unsigned number, const Failure& failure, Duration delay);
  void reused(const std::vector<Reuse>& steps);
  void succeeded(const StepSpec& step, const StepKey& key, const AttemptOutcome& outcome,
                 const AttemptCounts& counts);
  /// Stores the successes that are not yet stored.
  void flush();
  /// The step failed, or was cancelled; `lost` are the steps that can never run now.
  void failed(const StepSpec& step, Failure failure, const std::string& key,
              const AttemptCounts& counts, const std::vector<const StepSpec*>& lost);
  /// Steps that never had their turn. @param status skipped or cancelled
  void left_out(const std::vector<const StepSpec*>& steps, const std::string& reason,
                StepStatus status);
  RunSummary run_ended(bool interrupted);

  const std::string& run_id() const { return record_.id; }

 private:
  struct Success {
    store::StepRecord step;
    store::AttemptRecord attempt;
    std::vector<store::KeyPart> parts;
  };
  /// Commits what `write` writes, with the successes before it.
  void commit(const std::function<void()>& write);
  void announce_start(const std::vector<const StepSpec*>& steps);
  store::StepRecord record_of(const StepSpec& step, StepStatus status,
                              const std::string& key = {}) const;
  store::StepRecord record_of(const StepSpec& step, StepStatus status, const std::string& key,
                              const AttemptCounts& counts) const;

  store::RunStore& runs_;
  EventSink& events_;
  store::RunRecord record_;
  RunSummary summary_{};
  std::vector<Success> unstored_;
  Clock::time_point began_ = Clock::now();
};

}  // namespace pipeline::engine

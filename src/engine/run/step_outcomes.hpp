/// @file
/// Records the outcomes of steps, and their consequences for dependent steps.
#pragma once

#include <string>
#include <vector>

#include "engine/cache/results.hpp"
#include "engine/run/graph_walk.hpp"
#include "engine/run/journal.hpp"
#include "engine/run/result_folders.hpp"
#include "engine/run/temp_outputs.hpp"

namespace pipeline::engine {

/// Each function sets the status of the step, writes the journal and tells the scheduler. A step
/// whose outputs are damaged may run again and end a second time, which does not schedule its
/// dependents again.
class StepOutcomes {
 public:
  /// @param stop stopped when a step fails, if the pipeline's mode is fail_fast
  StepOutcomes(const RunContext& context, GraphWalk& walk, Journal& journal, Results& results,
               core::CancelSource& stop);

  /// Ends a step with an earlier result.
  void reuse(model::StepIndex i, store::CacheEntry entry);
  void succeed(model::StepIndex i, const StepKey& key, AttemptOutcome outcome,
               const AttemptCounts& counts);
  void fail(model::StepIndex i, Failure failure, const std::string& key,
            const AttemptCounts& counts);
  /// Fails a step that has not begun.
  void fail(model::StepIndex i, Failure failure) { fail(i, std::move(failure), {}, {}); }
  /// Ends a step that its conditions rule out.
  void skip(model::StepIndex i, const std::string& reason);
  /// Returns false if the step may start; otherwise ends it as skipped, because of another step's
  /// failure.
  bool skip_if_stopped(model::StepIndex i);
  /// Ends a step with a matrix or rounds whose instances have ended.
  void end_instances(model::StepIndex i);
  /// Records the steps that were not started because the run was stopped.
  /// @param by_user the user has stopped the run; false: a failure has
  void skip_remaining(bool by_user);
  /// Returns true if a failure prevents other steps from starting.
  bool has_stopped() const { return !stopped_by_.empty(); }
  const ResultFolders& result_folders() const { return result_folders_; }
  TempOutputs& temp_outputs() { return temp_outputs_; }

 private:
  void end_with_loop(model::StepIndex i);
  std::vector<const StepSpec*> skip_dependents(model::StepIndex i);
  async::Task<> flush_soon();
  std::string stop_reason() const;

  const RunContext& context_;
  RunSteps& steps_;
  model::Scheduler& scheduler_;
  Journal& journal_;
  Results& results_;
  core::CancelSource& stop_;
  ResultFolders result_folders_;
  TempOutputs temp_outputs_;
  std::string stopped_by_;  ///< The step whose failure prevents others from starting.
  bool flushes_soon_ = false;
};

}  // namespace pipeline::engine

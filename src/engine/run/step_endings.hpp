/// @file
/// What follows from the end of a step: for its state, for the steps that need it, and for the
/// journal.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/cancel.hpp"
#include "engine/cache/results.hpp"
#include "engine/graph/run_steps.hpp"
#include "engine/run/journal.hpp"
#include "model/graph.hpp"

namespace pipeline::engine {

class StepEndings {
 public:
  /// Keeps references to all arguments.
  /// @param stop  stopped by a failure, if the pipeline's mode is fail_fast
  /// @param spawn runs a coroutine that refers to this object and must have ended before this is
  /// destroyed
  StepEndings(const PipelineSpec& pipeline, store::ArtifactStore& artifacts, RunSteps& steps,
              model::Scheduler& scheduler, Journal& journal, Results& results,
              core::CancelSource& stop, std::function<void(async::Task<>)> spawn);

  /// Takes an earlier result. The caller records what is returned, many at once.
  Reuse reuse(model::StepIndex i, store::CacheEntry entry);
  void succeed(model::StepIndex i, const StepKey& key, AttemptOutcome outcome,
               const AttemptCounts& counts);
  void fail(model::StepIndex i, Failure failure, const std::string& key,
            const AttemptCounts& counts);
  /// Records that the step does not run, if its conditions say so or the run is stopped.
  bool leaves_out(model::StepIndex i);
  /// Ends a step that is its instances, which have ended.
  void end_instances(model::StepIndex i);
  /// Records the steps that were not started because the run was stopped.
  void finish_rest(bool by_user);
  /// Returns true if a failure prevents other steps from starting.
  bool has_stopped() const { return !stopped_by_.empty(); }

 private:
  std::vector<const StepSpec*> lose_dependents(model::StepIndex i);
  async::Task<> flush_soon();
  std::string stop_reason() const;

  const PipelineSpec& pipeline_;
  store::ArtifactStore& artifacts_;
  RunSteps& steps_;
  model::Scheduler& scheduler_;
  Journal& journal_;
  Results& results_;
  core::CancelSource& stop_;
  std::function<void(async::Task<>)> spawn_;
  std::string stopped_by_;  ///< The step whose failure prevents others from starting.
  bool flushes_soon_ = false;
};

}  // namespace pipeline::engine

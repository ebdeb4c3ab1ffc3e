/// @file
/// The walk over a pipeline's graph: decides for each step in turn whether it runs, is reused or is
/// skipped, with the reason. A run, a plan and the checks before a run differ only in the
/// StepStarter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "engine/cache/results.hpp"
#include "engine/graph/run_steps.hpp"
#include "engine/run_context.hpp"
#include "model/graph.hpp"

namespace pipeline::engine {

/// The action for a step, with the reason.
struct Decision {
  /// unknown: outputs that the step takes, or the values of its matrix, do not exist yet, and
  /// nothing makes them, because this is a plan.
  enum class Action { run, reuse, skip, unknown };
  Action action = Action::run;
  std::string reason;     ///< The reason of `skip`.
  std::string error;      ///< The error of a condition that cannot be evaluated; the step fails.
  std::string condition;  ///< In a plan: the condition that may still skip the step.
  std::string waits_for;  ///< For `unknown`: a step whose outputs are not known.
  std::size_t also_waits_for = 0;  ///< The number of further such steps.
  orchestrators::Environment environment;
  std::optional<StepKey> key;  ///< Unset if inputs or the environment's id are not known yet.
  store::CacheEntry entry;     ///< For `reuse`: the earlier result.
};

/// Carries out the decisions of the walk. Ends every step that it receives by a call of the
/// scheduler's mark_succeeded() or mark_failed(), at once or before wait() returns.
class StepStarter {
 public:
  virtual ~StepStarter() = default;
  /// Returns false once no further step is to be decided.
  virtual bool may_start() const = 0;
  /// Returns true if the step is left out regardless of its conditions, and records that.
  virtual bool excludes(model::StepIndex /*i*/) { return false; }
  /// Returns the number of the queue in which a ready step waits while has_room() is false; nothing
  /// if the step is decided at once. A step in a queue is an index, so that a hundred thousand
  /// steps cost little.
  virtual std::optional<std::size_t> queue_of(model::StepIndex /*i*/) { return std::nullopt; }
  /// Returns true if a further step of the queue may be taken.
  virtual bool has_room(std::size_t /*queue*/) const { return true; }
  /// Carries out the decision about a step.
  virtual void take(model::StepIndex i, Decision decision) = 0;
  /// Fails a step whose decision threw; called while the exception is handled.
  virtual void fail(model::StepIndex i, const core::EnvironmentError& error) = 0;
  virtual void fail(model::StepIndex i, Failure failure) = 0;
  /// Leaves a matrix or a loop as it is, because the outputs that decide about it do not exist.
  virtual void leave_open(model::StepIndex i, const std::string& reason) = 0;
  /// Called after the instances of `steps`, or those of their next round, were added to the walk.
  virtual void expanded(const std::vector<const StepSpec*>& steps,
                        std::pair<model::StepIndex, std::size_t> instances,
                        std::optional<unsigned> round) = 0;
  /// Ends a step whose instances have ended.
  virtual void end_instances(model::StepIndex i) = 0;
  /// Waits until a step that was started has ended. Returns false if there is nothing to wait for.
  virtual async::Task<bool> wait() = 0;
};

class GraphWalk {
 public:
  /// Throws InputError if there is no step `options.only_step`.
  GraphWalk(const RunContext& context, Results& results);

  RunSteps& steps() { return steps_; }
  const RunSteps& steps() const { return steps_; }
  model::Scheduler& scheduler() { return scheduler_; }

  /// Decides about every step that is or becomes ready, until the starter has nothing to wait for.
  async::Task<> run(StepStarter& starter);

 private:
  async::Task<> start_ready_steps(StepStarter& starter);
  std::optional<model::StepIndex> next(StepStarter& starter);
  void empty_queues();
  async::Task<Decision> decide(model::StepIndex i);
  Decision decide_by_conditions(model::StepIndex i);
  std::vector<model::StepIndex> unknown_sources(const StepSpec& step) const;
  void expand_matrices(StepStarter& starter);
  void expand(const std::vector<model::StepIndex>& steps, StepStarter& starter);
  bool has_values(const MatrixSpec& matrix) const;
  void end_or_repeat(model::StepIndex i, StepStarter& starter);
  bool has_further_round(model::StepIndex i, StepStarter& starter);
  bool begins_rounds(model::StepIndex i, StepStarter& starter);
  std::string without_secrets(const std::string& message);

  const RunContext& context_;
  Results& results_;
  RunSteps steps_;
  model::Scheduler scheduler_;
  /// Urgencies and indices of ready steps.
  using Queue =
      std::priority_queue<std::pair<std::uint32_t, model::StepIndex>,
                          std::vector<std::pair<std::uint32_t, model::StepIndex>>, std::greater<>>;
  std::map<std::size_t, Queue> queues_;
  /// Secrets of all steps; read when the first message is made.
  std::optional<std::vector<std::string>> secrets_;
};

}  // namespace pipeline::engine

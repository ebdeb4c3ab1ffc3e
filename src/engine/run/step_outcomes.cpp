#include "engine/run/step_outcomes.hpp"

#include <utility>

#include "async/sleep.hpp"
#include "engine/attempt/checkpoint.hpp"

namespace pipeline::engine {

StepOutcomes::StepOutcomes(const RunContext& context, GraphWalk& walk, Journal& journal,
                           Results& results, core::CancelSource& stop)
    : context_(context),
      steps_(walk.steps()),
      scheduler_(walk.scheduler()),
      journal_(journal),
      results_(results),
      stop_(stop),
      result_folders_(context),
      temp_outputs_(context, steps_, journal, results) {}

void StepOutcomes::reuse(model::StepIndex i, store::CacheEntry entry) {
  const auto& step = steps_.spec(i);
  if (results_.may_be_unsent(step, entry)) context_.tasks.spawn(results_.send(entry));
  if (results_.shares_names(step))
    context_.tasks.spawn(results_.publish_names(step, entry.run, entry.outputs));
  result_folders_.put(step, entry.outputs);
  steps_[i].outputs = entry.outputs;
  steps_[i].status = StepStatus::cached;
  journal_.reused({&step, std::move(entry)});
  temp_outputs_.step_ended(i);
  scheduler_.mark_succeeded(i);
}

void StepOutcomes::succeed(model::StepIndex i, const StepKey& key, AttemptOutcome outcome,
                           const AttemptCounts& counts) {
  const auto& step = steps_.spec(i);
  steps_[i].outputs = outcome.outputs;
  steps_[i].status = StepStatus::succeeded;
  journal_.succeeded(step, key, outcome, counts, origins_of(step, steps_.outputs_of()));
  result_folders_.put(step, outcome.outputs);
  if (outcome.result.cleanup || outcome.checkpoint || results_.shares_result(step)) {
    journal_.flush();
    if (outcome.checkpoint) outcome.checkpoint->remove();
    if (outcome.result.remove_checkpoint) outcome.result.remove_checkpoint();
    store::CacheEntry entry{key.key, journal_.run_id(), step.name, outcome.outputs};
    context_.tasks.spawn(
        results_.publish_and_clean_up(step, std::move(entry), std::move(outcome.result.cleanup)));
  } else if (!std::exchange(flushes_soon_, true)) {
    context_.tasks.spawn(flush_soon());
  }
  if (results_.shares_names(step))
    context_.tasks.spawn(results_.publish_names(step, journal_.run_id(), steps_[i].outputs));
  temp_outputs_.step_ended(i);
  if (!scheduler_.is_gone(i)) scheduler_.mark_succeeded(i);
}

/// Waits briefly, so that the next step can start and be persisted together with earlier successes.
async::Task<> StepOutcomes::flush_soon() {
  constexpr std::chrono::milliseconds time_to_start_next{1};
  co_await async::sleep(time_to_start_next);
  flushes_soon_ = false;
  journal_.flush();
}

void StepOutcomes::fail(model::StepIndex i, Failure failure, const std::string& key,
                        const AttemptCounts& counts) {
  const auto& step = steps_.spec(i);
  const auto mode = context_.services.pipeline.execution_mode;
  const bool is_cancelled = failure.kind == FailureKind::cancelled;
  steps_[i].status = is_cancelled ? StepStatus::cancelled : StepStatus::failed;
  const auto lost = skip_dependents(i);
  journal_.failed(step, std::move(failure), key, counts, lost);
  if (is_cancelled || mode == ExecutionMode::continue_on_failure || step.run_on != RunOn::success ||
      step.allow_failure)
    return;
  if (stopped_by_.empty()) stopped_by_ = step.name;
  if (mode == ExecutionMode::fail_fast) stop_.stop(core::StopLevel::graceful);
}

bool StepOutcomes::skip_if_stopped(model::StepIndex i) {
  const auto& step = steps_.spec(i);
  if (stopped_by_.empty() || step.run_on != RunOn::success) return false;
  auto lost = skip_dependents(i);
  steps_[i].status = StepStatus::skipped;
  lost.insert(lost.begin(), &step);
  journal_.left_out(lost, stop_reason(), StepStatus::skipped);
  return true;
}

void StepOutcomes::skip(model::StepIndex i, const std::string& reason) {
  const auto lost = skip_dependents(i);
  steps_[i].status = StepStatus::skipped;
  journal_.skipped(steps_.spec(i), reason, lost);
}

void StepOutcomes::end_instances(model::StepIndex i) {
  if (steps_.spec(i).repeat && !steps_.is_loop_head(i)) return end_with_loop(i);
  const auto [outcome, instance] = steps_.outcome_of_instances(i);
  if (outcome == Outcome::made) {
    steps_[i].status = StepStatus::succeeded;
    return scheduler_.mark_succeeded(i);
  }
  steps_[i].status = steps_.state_of(instance->name).status;
  journal_.dependents_lost(*instance, steps_[i].status, skip_dependents(i));
}

/// Ends a step of a loop whose head has ended. After a head that was skipped or has failed, only
/// a step that waits for the ends of earlier steps (RunSteps::wait_for_ends()) gets here.
void StepOutcomes::end_with_loop(model::StepIndex i) {
  const auto head = steps_.index_of(steps_.spec(i).repeat->of);
  const auto status = steps_[head].status;
  if (status == StepStatus::succeeded) {
    steps_[i].status = status;
    return scheduler_.mark_succeeded(i);
  }
  auto lost = skip_dependents(i);
  steps_[i].status = StepStatus::skipped;
  const auto* cause = &steps_.spec(head);
  if (steps_[i].instances)  // Rounds have begun, and their steps stand for the step.
    cause = steps_.outcome_of_instances(head).second;
  else
    lost.insert(lost.begin(), &steps_.spec(i));
  journal_.dependents_lost(*cause, status, lost);
}

/// Removes and returns the steps that can no longer run because this one does not.
std::vector<const StepSpec*> StepOutcomes::skip_dependents(model::StepIndex i) {
  std::vector<const StepSpec*> lost;
  if (scheduler_.is_gone(i)) return lost;
  for (const auto dependent : scheduler_.mark_failed(i)) {
    steps_[dependent].status = StepStatus::skipped;
    // A repeated step is replaced by its rounds once they have begun.
    if (!steps_[dependent].instances) lost.push_back(&steps_.spec(dependent));
  }
  return lost;
}

void StepOutcomes::skip_remaining(bool by_user) {
  journal_.left_out(steps_.with_status(StepStatus::pending),
                    by_user ? "the run was interrupted" : stop_reason(),
                    by_user ? StepStatus::cancelled : StepStatus::skipped);
}

std::string StepOutcomes::stop_reason() const {
  const bool is_fast = context_.services.pipeline.execution_mode == ExecutionMode::fail_fast;
  const std::string mode = is_fast ? "fail_fast" : "stop_on_failure";
  return "not started, since '" + stopped_by_ + "' failed (execution_mode: " + mode + ")";
}

}  // namespace pipeline::engine

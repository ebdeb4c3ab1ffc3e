#include "engine/run/step_endings.hpp"

#include <utility>

namespace pipeline::engine {

StepEndings::StepEndings(const PipelineSpec& pipeline, store::ArtifactStore& artifacts,
                         RunSteps& steps, model::Scheduler& scheduler, Journal& journal,
                         Results& results, core::CancelSource& stop,
                         std::function<void(async::Task<>)> spawn)
    : pipeline_(pipeline),
      artifacts_(artifacts),
      steps_(steps),
      scheduler_(scheduler),
      journal_(journal),
      results_(results),
      stop_(stop),
      spawn_(std::move(spawn)) {}

Reuse StepEndings::reuse(model::StepIndex i, store::CacheEntry entry) {
  if (results_.may_be_unsent(steps_.spec(i), entry)) spawn_(results_.send(entry));
  if (results_.shares_names(steps_.spec(i)))
    spawn_(results_.publish_names(steps_.spec(i), entry.run, entry.outputs));
  steps_[i].outputs = entry.outputs;
  steps_[i].status = StepStatus::cached;
  scheduler_.succeeded(i);
  return {&steps_.spec(i), std::move(entry)};
}

void StepEndings::succeed(model::StepIndex i, const StepKey& key, AttemptOutcome outcome,
                          const AttemptCounts& counts) {
  steps_[i].outputs = outcome.outputs;
  steps_[i].status = StepStatus::succeeded;
  journal_.succeeded(steps_.spec(i), key, outcome, counts,
                     origins_of(steps_.spec(i), steps_.outputs_of()));
  if (outcome.result.cleanup || outcome.checkpoint || results_.are_shared(steps_.spec(i))) {
    journal_.flush();
    if (outcome.checkpoint) outcome.checkpoint->remove();
    if (outcome.result.remove_checkpoint) outcome.result.remove_checkpoint();
    store::CacheEntry entry{key.key, journal_.run_id(), steps_.spec(i).name, outcome.outputs};
    spawn_(results_.hand_on(steps_.spec(i), std::move(entry), std::move(outcome.result.cleanup)));
  } else if (!std::exchange(flushes_soon_, true)) {
    spawn_(flush_soon());
  }
  if (results_.shares_names(steps_.spec(i)))
    spawn_(results_.publish_names(steps_.spec(i), journal_.run_id(), steps_[i].outputs));
  scheduler_.succeeded(i);
}

/// Waits briefly, so that the next step can start and be persisted together with earlier successes.
async::Task<> StepEndings::flush_soon() {
  asio::steady_timer moment(co_await asio::this_coro::executor, std::chrono::milliseconds(1));
  co_await moment.async_wait(asio::use_awaitable);
  flushes_soon_ = false;
  journal_.flush();
}

void StepEndings::fail(model::StepIndex i, Failure failure, const std::string& key,
                       const AttemptCounts& counts) {
  const bool cancelled = failure.kind == FailureKind::cancelled;
  const auto status = cancelled ? StepStatus::cancelled : StepStatus::failed;
  steps_[i].status = status;
  const auto lost = lose_dependents(i);
  journal_.failed(steps_.spec(i), std::move(failure), key, counts, lost);
  if (cancelled || pipeline_.execution_mode == ExecutionMode::continue_on_failure ||
      steps_.spec(i).run_on != RunOn::success)
    return;
  if (stopped_by_.empty()) stopped_by_ = steps_.spec(i).name;
  if (pipeline_.execution_mode == ExecutionMode::fail_fast) stop_.stop(core::StopLevel::graceful);
}

bool StepEndings::leaves_out(model::StepIndex i) {
  const auto& step = steps_.spec(i);
  if (!stopped_by_.empty() && step.run_on == RunOn::success) {
    auto lost = lose_dependents(i);
    steps_[i].status = StepStatus::skipped;
    lost.insert(lost.begin(), &step);
    journal_.left_out(lost, stop_reason(), StepStatus::skipped);
    return true;
  }
  if (!is_conditional(step)) return false;
  auto decision = decide(step, steps_.before(i), artifacts_);
  if (decision.value == true) return false;
  if (!decision.value) {
    fail(i, Failure{FailureKind::not_started, decision.error, {}, {}}, {}, {});
    return true;
  }
  const auto lost = lose_dependents(i);
  steps_[i].status = StepStatus::skipped;
  journal_.skipped(step, decision.reason, lost);
  return true;
}

void StepEndings::end_instances(model::StepIndex i) {
  const auto [outcome, instance] = steps_.outcome_of_instances(i);
  if (outcome == Outcome::made) {
    steps_[i].status = StepStatus::succeeded;
    return scheduler_.succeeded(i);
  }
  steps_[i].status = steps_.state_of(instance->name).status;
  journal_.lost(*instance, steps_[i].status, lose_dependents(i));
}

/// Removes the steps that can no longer run because this one does not.
std::vector<const StepSpec*> StepEndings::lose_dependents(model::StepIndex i) {
  std::vector<const StepSpec*> lost;
  for (const auto dependent : scheduler_.failed(i)) {
    steps_[dependent].status = StepStatus::skipped;
    // A repeated step is its rounds once they have begun.
    if (!steps_[dependent].instances) lost.push_back(&steps_.spec(dependent));
  }
  return lost;
}

void StepEndings::finish_rest(bool by_user) {
  journal_.left_out(steps_.with(StepStatus::pending),
                    by_user ? "the run was interrupted" : stop_reason(),
                    by_user ? StepStatus::cancelled : StepStatus::skipped);
}

std::string StepEndings::stop_reason() const {
  const std::string mode =
      pipeline_.execution_mode == ExecutionMode::fail_fast ? "fail_fast" : "stop_on_failure";
  return "not started, since '" + stopped_by_ + "' failed (execution_mode: " + mode + ")";
}

}  // namespace pipeline::engine

#include "engine/run/graph_walk.hpp"

#include <algorithm>
#include <utility>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "engine/attempt/secret_mask.hpp"
#include "engine/cache/cache_key.hpp"
#include "engine/run/step_environment.hpp"

namespace pipeline::engine {

GraphWalk::GraphWalk(const RunContext& context, Results& results)
    : context_(context),
      results_(results),
      steps_(context.services.pipeline, context.options.only_step),
      scheduler_(steps_.graph(), steps_.wait_for_ends()) {}

async::Task<> GraphWalk::run(StepStarter& starter) {
  for (bool goes_on = true; goes_on;) {
    co_await start_ready_steps(starter);
    goes_on = co_await starter.wait();
  }
}

/// Decides about the steps that are ready, and gives the decisions to the starter.
async::Task<> GraphWalk::start_ready_steps(StepStarter& starter) {
  while (starter.may_start()) {
    expand_matrices(starter);
    const auto i = next(starter);
    if (!i) co_return;
    try {
      if (steps_[*i].instances || steps_.spec(*i).repeat) {
        end_or_repeat(*i, starter);
      } else if (!starter.excludes(*i)) {
        auto decision = co_await decide(*i);
        // The step may have failed meanwhile, because its environment could not be prepared.
        if (scheduler_.is_gone(*i)) continue;
        starter.take(*i, std::move(decision));
      }
    } catch (const core::EnvironmentError& error) {
      starter.fail(*i, error);
    }
  }
  empty_queues();
}

/// Returns the next ready step: one that has no queue, else the most urgent step of the first queue
/// that has room; nothing if there is none.
std::optional<model::StepIndex> GraphWalk::next(StepStarter& starter) {
  while (const auto i = scheduler_.take()) {
    const bool is_replaced = steps_[*i].instances || steps_.spec(*i).repeat;
    const auto queue = is_replaced ? std::nullopt : starter.queue_of(*i);
    if (!queue) return i;
    queues_[*queue].emplace(scheduler_.urgency(*i), *i);
  }
  for (auto& [number, queue] : queues_)
    while (!queue.empty() && starter.has_room(number)) {
      const auto i = queue.top().second;
      queue.pop();
      if (!scheduler_.is_gone(i)) return i;
    }
  return std::nullopt;
}

/// Makes the steps in the queues ready again, because the starter takes no more.
void GraphWalk::empty_queues() {
  for (auto& [number, queue] : queues_)
    for (; !queue.empty(); queue.pop()) scheduler_.put_back(queue.top().second);
}

/// Decides whether the step runs, is reused or is skipped.
async::Task<Decision> GraphWalk::decide(model::StepIndex i) {
  const auto& step = steps_.spec(i);
  auto decision = decide_by_conditions(i);
  if (decision.action == Decision::Action::skip) co_return decision;
  decision.environment = co_await environment_of(context_, step);
  const auto unknown = unknown_sources(step);
  if (!unknown.empty()) {
    decision.waits_for = steps_.spec(unknown.back()).name;
    decision.also_waits_for = unknown.size() - 1;
  }
  if (step.matrix || !unknown.empty()) {
    decision.action = Decision::Action::unknown;
  } else if (!decision.environment.id.empty()) {
    decision.key = results_.keys().key(step, decision.environment, steps_.outputs_of());
    if (auto entry = results_.find_local(step, decision.key->key)) {
      decision.action = Decision::Action::reuse;
      decision.entry = std::move(*entry);
    }
  }
  co_return decision;
}

/// Decides whether conditions skip the step; otherwise returns a decision to run it.
Decision GraphWalk::decide_by_conditions(model::StepIndex i) {
  const auto& step = steps_.spec(i);
  Decision decision;
  const auto has_minimum = [](const InputSpec& input) { return input.at_least.value_or(0) > 0; };
  if (!is_conditional(step) && std::ranges::none_of(step.inputs, has_minimum) &&
      !steps_.has_lost_need(i))
    return decision;
  auto& artifacts = context_.services.artifacts;
  if (step.matrix) {  // Each instance evaluates the condition itself.
    decision.reason = lost_need(step, steps_.before(i, artifacts));
    if (!decision.reason.empty()) decision.action = Decision::Action::skip;
    if (step.when) decision.condition = "when: " + step.when->text;
    return decision;
  }
  auto verdict = engine::decide(step, steps_.before(i, artifacts), artifacts);
  decision.error = without_secrets(verdict.error);
  if (verdict.value == false) {
    decision.action = Decision::Action::skip;
    decision.reason = without_secrets(verdict.reason);
  } else if (!verdict.value) {
    decision.condition = without_secrets(verdict.reason);
  } else if (step.run_on == RunOn::success) {
    // In a plan, an earlier step may still be skipped, and this step with it.
    for (const auto need : steps_.needs(i)) {
      const auto& name = steps_.spec(need).name;
      const auto if_skipped = [&](const std::string& other) {
        return other == name ? Outcome::skipped : Outcome::made;
      };
      if (steps_[need].may_be_skipped && decision.condition.empty() &&
          !lost_need(step, {if_skipped, Outcome::made, {}}).empty())
        decision.condition = "unless '" + name + "' is skipped";
    }
  }
  return decision;
}

/// Returns a message that may quote an output, without the values of the pipeline's secrets.
std::string GraphWalk::without_secrets(const std::string& message) {
  if (message.empty()) return message;
  if (!secrets_) {
    secrets_.emplace();
    for (const auto& step : context_.services.pipeline.steps) {
      if (step.secrets.empty()) continue;
      try {
        for (auto& [name, value] : resolve_secrets(step)) secrets_->push_back(std::move(value));
      } catch (const core::EnvironmentError&) {
        // A plan needs no secrets. A run has checked that they are there.
      }
    }
    std::ranges::sort(*secrets_);
    const auto repeated = std::ranges::unique(*secrets_);
    secrets_->erase(repeated.begin(), repeated.end());
  }
  return engine::without_secrets(message, *secrets_);
}

/// Returns, in a plan, the steps whose outputs this step takes and which may run again.
std::vector<model::StepIndex> GraphWalk::unknown_sources(const StepSpec& step) const {
  std::vector<model::StepIndex> unknown;
  for (const auto& input : step.inputs)
    for (const auto& source : input.sources) {
      const auto i = steps_.index_of(source.step);
      const auto outcome = steps_.outcome_of(i);
      const bool is_missing = input.at_least && outcome != Outcome::unknown;
      if (outcome != Outcome::made && !is_missing) unknown.push_back(i);
    }
  std::ranges::sort(unknown);
  const auto repeated = std::ranges::unique(unknown);
  unknown.erase(repeated.begin(), repeated.end());
  return unknown;
}

/// Replaces the steps whose matrix values are now known by their instances.
void GraphWalk::expand_matrices(StepStarter& starter) {
  for (auto steps = steps_.take_dynamic_matrix(); !steps.empty();
       steps = steps_.take_dynamic_matrix()) {
    if (!has_values(*steps_.spec(steps.front()).matrix)) {
      for (const auto i : steps) starter.leave_open(i, "matrix: an output with its values is gone");
      continue;
    }
    std::optional<Failure> failure;
    try {
      expand(steps, starter);
    } catch (const core::InputError& error) {
      const auto& wrong = error.diagnostics().front();
      failure =
          Failure{FailureKind::not_started, "matrix: " + without_secrets(wrong.message), {}, {}};
      if (!wrong.suggestion.empty()) failure->hints.push_back(wrong.suggestion);
    } catch (const core::EnvironmentError& error) {
      for (const auto i : steps)
        if (steps_[i].status == StepStatus::pending) starter.fail(i, error);
    }
    if (!failure) continue;
    for (const auto i : steps)
      if (steps_[i].status == StepStatus::pending) starter.fail(i, *failure);
  }
}

/// Replaces the steps, which share one matrix, by their instances.
void GraphWalk::expand(const std::vector<model::StepIndex>& steps, StepStarter& starter) {
  const auto needs = steps_.expand(steps, context_.services.artifacts);
  for (std::size_t k = 0; k < steps.size(); ++k) {
    scheduler_.grow(steps[k], needs[k], steps_.wait_for_ends(steps_[steps[k]].instances->first));
    starter.expanded({&steps_.spec(steps[k])}, *steps_[steps[k]].instances, std::nullopt);
  }
}

/// Returns true if this machine has the outputs with the matrix's values; a plan fetches none.
bool GraphWalk::has_values(const MatrixSpec& matrix) const {
  const auto outputs = steps_.outputs_of();
  return std::ranges::all_of(matrix.axes, [&](const AxisSpec& axis) {
    return !axis.items ||
           context_.services.artifacts.has(outputs(axis.items->source).output->digest);
  });
}

/// Ends a step that was replaced by instances, or begins the next round of a loop.
void GraphWalk::end_or_repeat(model::StepIndex i, StepStarter& starter) {
  if (!steps_.is_loop_head(i)) return starter.end_instances(i);
  if (!(steps_[i].instances ? has_further_round(i, starter) : begins_rounds(i, starter))) return;
  const auto round = steps_.rounds(i);
  const std::pair instances(static_cast<model::StepIndex>(steps_.size()),
                            steps_.repeated_with(i).size());
  const auto needs = steps_.add_round(i);
  scheduler_.grow(i, needs, steps_.wait_for_ends(instances.first));
  starter.expanded(steps_.repeated_with(i), instances, round);
}

/// Returns true if another round follows the one that has ended; else ends the loop.
bool GraphWalk::has_further_round(model::StepIndex i, StepStarter& starter) {
  const auto outcome = steps_.outcome_of_instances(i).first;
  const bool has_until = steps_.spec(i).repeat->until.has_value();
  if (outcome == Outcome::unknown && has_until) {
    starter.leave_open(i, {});
    return false;
  }
  if (outcome != Outcome::made && outcome != Outcome::unknown) {
    starter.end_instances(i);
    return false;
  }
  const auto is_last = steps_.is_last_round(i, context_.services.artifacts);
  if (!is_last.error.empty()) {
    starter.fail(i, Failure{FailureKind::not_started, without_secrets(is_last.error), {}, {}});
  } else if (!is_last.value) {
    starter.leave_open(i, "until: an output that it names is gone");
  } else if (*is_last.value) {
    if (!is_last.reason.empty())
      context_.events.emit(event::Notice{
          steps_.spec(i).name, "no further round after " + std::to_string(steps_.rounds(i)) +
                                   ", the most allowed: " + without_secrets(is_last.reason)});
    steps_.end_rounds(i);
    starter.end_instances(i);
  }
  return is_last.value == false;
}

/// Returns true if the first round begins; else ends the loop.
bool GraphWalk::begins_rounds(model::StepIndex i, StepStarter& starter) {
  if (starter.excludes(i)) return false;
  auto decision = decide_by_conditions(i);
  if (decision.action == Decision::Action::skip)
    starter.take(i, std::move(decision));
  else if (!decision.error.empty())
    starter.fail(i, Failure{FailureKind::not_started, std::move(decision.error), {}, {}});
  else if (!decision.condition.empty())
    starter.leave_open(i, decision.condition);
  else
    return true;
  return false;
}

}  // namespace pipeline::engine

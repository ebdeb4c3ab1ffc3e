#include "engine/run/dry_starter.hpp"

namespace pipeline::engine {

void DryStarter::end_step(model::StepIndex i, Decision decision) {
  auto& state = steps_[i];
  state.may_be_skipped = !decision.condition.empty() || !decision.error.empty();
  if (decision.action == Decision::Action::skip) state.status = StepStatus::skipped;
  if (decision.action == Decision::Action::reuse) {
    state.status = StepStatus::cached;
    state.outputs = std::move(decision.entry.outputs);
  }
  scheduler_.mark_succeeded(i);
}

void DryStarter::end_instances(model::StepIndex i) {
  auto& state = steps_[i];
  const auto& step = steps_.spec(i);
  if (step.repeat && !steps_.is_loop_head(i)) {  // The step ends with the head of its loop.
    const auto& head = steps_[steps_.index_of(step.repeat->of)];
    state.status = head.status;
    state.may_be_skipped = head.may_be_skipped;
  } else if (const auto outcome = steps_.outcome_of_instances(i).first; outcome == Outcome::made) {
    state.status = StepStatus::succeeded;
  } else if (outcome == Outcome::skipped) {
    state.status = StepStatus::skipped;
  } else {
    const auto [first, count] = *state.instances;
    for (auto k = first; k < first + count; ++k) state.may_be_skipped |= steps_[k].may_be_skipped;
  }
  scheduler_.mark_succeeded(i);
}

}  // namespace pipeline::engine

#include "engine/run_steps.hpp"

#include <algorithm>

#include "engine/decision.hpp"

namespace pipeline::engine {

RunSteps::RunSteps(const PipelineSpec& pipeline, const std::string& only_step)
    : pipeline_(pipeline),
      selected_(select_steps(pipeline, only_step)),
      graph_(needs_of(pipeline, selected_)),
      states_(selected_.size()) {
  position_.reserve(size());
  for (core::StepIndex i = 0; i < size(); ++i) position_.emplace(spec(i).name, i);
}

std::vector<const StepSpec*> RunSteps::with(StepStatus status) const {
  std::vector<const StepSpec*> found;
  for (core::StepIndex i = 0; i < size(); ++i)
    if (states_[i].status == status) found.push_back(&spec(i));
  return found;
}

void RunSteps::forget_outcomes() {
  for (auto& state : states_) state.status = StepStatus::pending;
}

std::vector<bool> RunSteps::final_steps() const {
  std::vector<bool> are_final(size());
  for (core::StepIndex i = 0; i < size(); ++i) are_final[i] = spec(i).run_on != RunOn::success;
  return are_final;
}

OutputsOf RunSteps::outputs_of() const {
  return [this](const SourceSpec& source) {
    return MadeOutput{&spec(position_.at(source.step)), find_output(source)};
  };
}

Predecessors RunSteps::before(core::StepIndex i) const {
  auto all = Outcome::made;
  for (const auto need : graph_.needs(i)) {
    const auto outcome = outcome_of(need);
    if (outcome == Outcome::failed || (outcome == Outcome::unknown && all != Outcome::failed))
      all = outcome;
  }
  return {[this](const std::string& step) { return outcome_of(position_.at(step)); }, all,
          [this](const SourceSpec& source) { return find_output(source); }};
}

Outcome RunSteps::outcome_of(core::StepIndex i) const {
  switch (states_[i].status) {
    case StepStatus::succeeded:
    case StepStatus::cached: return Outcome::made;
    case StepStatus::failed:
    case StepStatus::cancelled: return Outcome::failed;
    case StepStatus::skipped: return Outcome::skipped;
    default: return Outcome::unknown;
  }
}

const store::OutputRecord* RunSteps::find_output(const SourceSpec& source) const {
  const auto& outputs = states_[position_.at(source.step)].outputs;
  const auto found = std::ranges::find(outputs, source.output, &store::OutputRecord::name);
  return found == outputs.end() ? nullptr : &*found;
}

}  // namespace pipeline::engine

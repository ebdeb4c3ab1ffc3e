#include "engine/graph/rounds.hpp"

#include <algorithm>

#include "model/instance.hpp"
#include "model/step_needs.hpp"

namespace pipeline::engine {

using model::round_name;

namespace {

/// Returns the steps in an order in which each comes after the steps that it needs.
std::vector<const StepSpec*> in_order(const std::vector<const StepSpec*>& steps) {
  std::vector<std::vector<model::StepIndex>> needs(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto step = *steps[i];
    step.repeat.reset();  // `until` is evaluated after the round.
    model::for_each_need(step, [&](const std::string& name) {
      const auto found =
          std::ranges::find(steps, name, [](const auto* each) { return each->name; });
      if (found != steps.end())
        needs[i].push_back(static_cast<model::StepIndex>(found - steps.begin()));
    });
  }
  std::vector<const StepSpec*> ordered;
  const auto order = model::Graph(needs).topological_order();
  for (const auto i : *order) ordered.push_back(steps[i]);
  return ordered;
}

}  // namespace

Rounds::Rounds(std::vector<const StepSpec*> steps) : steps_(in_order(steps)) {
  head_ = position_of(steps_.front()->repeat->of);
}

std::size_t Rounds::position_of(const std::string& step) const {
  const auto found = std::ranges::find(steps_, step, [](const auto* each) { return each->name; });
  return static_cast<std::size_t>(found - steps_.begin());
}

/// Returns the step's name in the round; a step that is not repeated keeps its name.
std::string Rounds::name_in(const std::string& step, unsigned round) const {
  return position_of(step) < steps_.size() ? round_name(step, round) : step;
}

std::vector<StepSpec> Rounds::steps_of(unsigned round,
                                       const std::vector<const StepSpec*>& steps) const {
  std::vector<StepSpec> made;
  made.reserve(steps.size());
  for (const auto* step : steps) made.push_back(step_of(*step, round));
  return made;
}

/// Returns the step of a round: its name, sources and parameters belong to the round.
StepSpec Rounds::step_of(const StepSpec& step, unsigned round) const {
  StepSpec made = step;
  made.repeat.reset();
  made.when.reset();  // The condition decided about all rounds.
  made.name = round_name(step.name, round);
  if (!made.instance) made.instance = InstanceSpec{step.name, {}};
  made.instance->axes.push_back("round");
  made.parameters["round"] = Json(round);
  for (auto& input : made.inputs) {
    SourceList sources;
    if (input.then && round > 0)
      sources.push_back({round_name(input.then->step, round - 1), input.then->output});
    else
      for (const auto& source : input.sources)
        sources.push_back({name_in(source.step, round), source.output});
    input.sources = std::move(sources);
    input.then.reset();
  }
  for (auto& name : made.after) name = name_in(name, round);
  if (!made.matrix) return made;
  made.matrix->of = name_in(made.matrix->of, round);
  for (auto& axis : made.matrix->axes)
    if (axis.items) axis.items->source.step = name_in(axis.items->source.step, round);
  return made;
}

ConditionValue Rounds::is_last(unsigned round, const FindOutput& find_output,
                               store::ArtifactStore& artifacts) const {
  const auto& repeat = *head().repeat;
  const bool reaches_max = round + 1 >= repeat.max;
  if (!repeat.until) return {reaches_max, {}, {}};
  auto until = *repeat.until;
  if (const auto number = until.parameters.find("params.round"); number != until.parameters.end())
    number->second = Json(round);
  for (auto& [name, value] : until.outputs) value.source.step = name_in(value.source.step, round);
  auto holds = evaluate(until, find_output, artifacts, "until");
  if (holds.error.empty() && reaches_max) holds.value = true;
  return holds;
}

}  // namespace pipeline::engine

/// @file
/// The steps that a step depends on directly.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include <pipeline/spec.hpp>

namespace pipeline::model {

/// Calls `use` with each name of a step that `step` names as the source of an input, in its
/// conditions, in its matrix or in `after`. Inputs from the round before are left out.
template <class Use>
void for_each_need(const StepSpec& step, Use use) {
  for (const auto& input : step.inputs)
    for (const auto& source : input.sources) use(source.step);
  if (step.when)
    for (const auto& [name, value] : step.when->outputs) use(value.source.step);
  if (step.matrix)
    for (const auto& axis : step.matrix->axes)
      if (axis.items) use(axis.items->source.step);
  if (step.repeat && step.repeat->until)
    for (const auto& [name, value] : step.repeat->until->outputs) use(value.source.step);
  for (const auto& name : step.after) use(name);
}

/// Returns for each `repeat` the indices of the steps that run in its rounds, by the name of the
/// step that has the `repeat`.
inline std::map<std::string_view, std::vector<std::size_t>> repeated_together(
    const std::vector<StepSpec>& steps) {
  std::map<std::string_view, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i].repeat) groups[steps[i].repeat->of].push_back(i);
  return groups;
}

}  // namespace pipeline::model

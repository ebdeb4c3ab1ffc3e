/// @file
/// The steps that a step depends on directly.
#pragma once

#include <pipeline/spec.hpp>

namespace pipeline::core {

/// Calls `use` with the name of each step that this one names as the source of an input, in its
/// condition, in its matrix or as its predecessor; with a name several times if it is named several
/// times.
template <class Use>
void for_each_need(const StepSpec& step, Use use) {
  for (const auto& input : step.inputs)
    for (const auto& source : input.sources) use(source.step);
  if (step.when)
    for (const auto& [name, value] : step.when->outputs) use(value.source.step);
  if (step.matrix)
    for (const auto& axis : step.matrix->axes)
      if (axis.items) use(axis.items->source.step);
  for (const auto& name : step.after) use(name);
}

}  // namespace pipeline::core

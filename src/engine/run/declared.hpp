/// @file
/// What a pipeline declares of its steps, as it is kept with a run.
#pragma once

#include <string>
#include <vector>

#include <pipeline/spec.hpp>

namespace pipeline::engine {

/// Returns a JSON object: for each step the steps that it needs and the resources that it asks for;
/// the instances of a matrix are one step. `{"train": {"needs": ["load"], "memory": 1073741824}}`.
std::string declared(const std::vector<const StepSpec*>& steps);

}  // namespace pipeline::engine

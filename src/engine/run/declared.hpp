/// @file
/// The pipeline's declarations of its steps, as they are recorded with a run.
#pragma once

#include <string>
#include <vector>

#include <pipeline/spec.hpp>

namespace pipeline::engine {

/// Returns a JSON object with the needs and the resources of each step, as `{"train": {"needs":
/// ["load"], "memory": 1073741824}}`; the instances of a matrix are one step.
std::string declared(const std::vector<const StepSpec*>& steps);

}  // namespace pipeline::engine

/// @file
/// The pipeline's declarations of its steps, as they are recorded with a run.
#pragma once

#include <string>
#include <vector>

#include <pipeline/spec.hpp>

namespace pipeline::engine {

/// Returns a JSON object with the needs and the resources of each step, as `{"train": {"needs":
/// ["load"], "memory": 1073741824, "headline": {"accuracy": 0}}}`. `headline` maps those of the
/// step's metrics that PipelineSpec::headline names to their index in that list. The instances of a
/// matrix are one step. If the run makes some of its steps, each has a `place`, by which
/// Runs::steps() orders.
std::string declarations_of(const std::vector<const StepSpec*>& steps,
                            const std::vector<std::string>& headline);

}  // namespace pipeline::engine

/// @file
/// Reads `when` and `run_on`, which decide whether a step runs.
#pragma once

#include <string_view>
#include <vector>

#include <pipeline/spec.hpp>

#include "spec/step_reader.hpp"

namespace pipeline::spec {

/// Returns `success`, `failure` or `always`; reports anything else.
RunOn read_run_on(const core::Value& value, settings::Diagnostics& diagnostics);

/// Parses each step's `when` and `until`, and checks its parameters and types. The parameters of
/// the steps must be complete; the outputs are checked by check_references().
void read_conditions(std::vector<ReadStep>& steps, const std::vector<std::string_view>& sources,
                     settings::Diagnostics& diagnostics);

/// Sets the `after` of each step that has a `run_on` and no `after` of its own: to all steps that
/// neither have a `run_on` nor depend on a step with a `run_on`.
void order_final_steps(std::vector<StepSpec>& steps);

}  // namespace pipeline::spec

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

/// Parses each step's `when` and `until`, and checks the parameters and types in them. The
/// parameters of the steps must be complete; check_references() checks the outputs.
/// @param sources the texts of the files by Span::file
void read_conditions(std::vector<ReadStep>& steps, const std::vector<std::string_view>& sources,
                     settings::Diagnostics& diagnostics);

/// Sets the `after` of each step that has another `run_on` than `success` and no `after` of its
/// own: to all steps that neither have such a `run_on` nor depend on a step that has one.
void order_final_steps(std::vector<StepSpec>& steps);

}  // namespace pipeline::spec

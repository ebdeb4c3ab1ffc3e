/// @file
/// Executes a function step: a run starts the program again, which calls one of its functions and
/// ends.
#pragma once

#include <optional>
#include <string>

#include <pipeline/pipeline.hpp>

namespace pipeline::dsl {

/// Returns NAME if this process was started with `--pipe-step NAME`.
std::optional<std::string> step_to_enter();

/// Returns true if the pipeline has the step for which this process was started, as the function
/// that the run has declared.
bool has_step_to_enter(const Pipeline& pipeline);

/// Reads the arguments of the step's function from PIPE_INPUT_* and PIPE_PARAM_*, calls it, and
/// stores its results at PIPE_OUTPUT_*. An exception is written to the log and to
/// PIPE_FAILURE_FILE. Returns the process's exit code.
int enter_step(const Pipeline& pipeline, const std::string& name);

}  // namespace pipeline::dsl

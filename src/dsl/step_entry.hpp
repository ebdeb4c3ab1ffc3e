/// @file
/// The inside of a function step: the program, started again by a run, calls one of its functions
/// and ends.
#pragma once

#include <optional>
#include <string>

#include <pipeline/pipeline.hpp>

namespace pipeline::dsl {

/// The NAME of `--pipe-step NAME` if this process was started as a step, whoever has its arguments.
std::optional<std::string> step_to_enter();

/// Reads the arguments of the step's function from where PIPE_INPUT_* and PIPE_PARAM_* say, calls
/// it, and stores its results at PIPE_OUTPUT_*. What it throws goes to the log, and to
/// PIPE_FAILURE_FILE. Returns the process's exit code.
int enter_step(const Pipeline& pipeline, const std::string& name);

}  // namespace pipeline::dsl

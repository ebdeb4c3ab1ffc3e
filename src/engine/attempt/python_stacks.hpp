/// @file
/// The stacks of the Python programs of a stalled step.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orchestrators/attempts.hpp"

namespace pipeline::engine {

/// Returns the lines that `py-spy dump` prints, 60 at most, after `py-spy: `.
/// @param text untrusted: a step may have put the program there
std::vector<std::string> read_python_stacks(std::string_view text);

/// Runs `py-spy dump`, if their PATH has it, for at most four of the Python processes that belong
/// to `process`, and returns its lines. The processes are not paused.
async::Task<std::vector<std::string>> python_stacks(orchestrators::AttemptRunner& runner,
                                                    orchestrators::RunningProcess process);

/// Sends SIGABRT to those Python processes whose faulthandler then prints their stacks
/// (PYTHONFAULTHANDLER, which variables_of() sets for steps that can stall). Returns once they have
/// ended, after two seconds at most.
async::Task<> abort_python(orchestrators::AttemptRunner& runner,
                           orchestrators::RunningProcess process);

}  // namespace pipeline::engine

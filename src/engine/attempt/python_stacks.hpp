/// @file
/// Where the Python programs of a stalled step are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orchestrators/attempts.hpp"

namespace pipeline::engine {

/// Returns the lines that `py-spy dump` prints, 60 at most, behind `py-spy: `.
/// @param text untrusted: a step may have put the program there
std::vector<std::string> read_python_stacks(std::string_view text);

/// Runs `py-spy dump` for the Python processes of a process of the step, four at most, if their
/// PATH has it. It does not pause them.
async::Task<std::vector<std::string>> python_stacks(orchestrators::AttemptRunner& runner,
                                                    orchestrators::RunningProcess process);

/// Ends those whose faulthandler prints their stacks then (PYTHONFAULTHANDLER, which variables_of()
/// sets for steps that can stall), and returns once they have ended, after two seconds at most.
async::Task<> abort_python(orchestrators::AttemptRunner& runner,
                           orchestrators::RunningProcess process);

}  // namespace pipeline::engine

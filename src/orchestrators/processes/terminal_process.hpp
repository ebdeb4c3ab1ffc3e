/// @file
/// Runs a process on the user's terminal.
#pragma once

#include "orchestrators/processes/process.hpp"

namespace pipeline::orchestrators::processes {

/// Runs the process to its end with the standard streams of this one, in its session, so that
/// Ctrl-C reaches it and the jobs of a shell work. Blocks the thread. Returns the exit code, or 128
/// and the number of the signal that ended it. Throws EnvironmentError if it cannot be started.
int run_on_terminal(const ProcessOptions& options);

}  // namespace pipeline::orchestrators::processes

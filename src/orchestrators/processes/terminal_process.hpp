/// @file
/// Runs a process on the user's terminal.
#pragma once

#include "orchestrators/processes/process.hpp"

namespace pipeline::orchestrators::processes {

/// Runs the process to its end with the standard streams and in the session of this process, so
/// that Ctrl-C reaches it and a shell's job control works. Blocks the thread. Returns the exit
/// code, or 128 plus the number of the signal that ended the process. Throws EnvironmentError if it
/// cannot be started.
int run_on_terminal(const ProcessOptions& options);

}  // namespace pipeline::orchestrators::processes

/// @file
/// The process above a step's command in a container of an engine.
#pragma once

namespace pipeline::agent {

/// Runs the command, reaps orphaned processes, and forwards signals. SIGTERM goes to all processes
/// below this one; this function then returns once the last of them has ended, or the engine kills
/// them at its own time limit. Without a SIGTERM it returns when the command has ended, and the
/// end of the container kills the processes that are left.
/// @return the command's exit code, 128 plus the number of the signal that ended it, 126 or 127 if
/// the command cannot be executed, or 125 if no process can be started
int run_init(char** command);

}  // namespace pipeline::agent

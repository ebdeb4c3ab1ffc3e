/// @file
/// The process above a step's command in a container of an engine.
#pragma once

namespace pipeline::agent {

/// Runs the command, reaps orphaned processes, and forwards signals. SIGTERM goes to all processes
/// below this one, and all of them have the time that the engine leaves: this process ends with the
/// last of them. Without a SIGTERM it ends with the command, and the others with the container.
/// @return the command's exit code, or 128 plus the number of the signal that ended it
int run_init(char** command);

}  // namespace pipeline::agent

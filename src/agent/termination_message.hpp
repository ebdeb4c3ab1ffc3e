/// @file
/// Messages that a cluster reads from the container's termination log when the agent has ended, and
/// shows in the pod's status: the reason why the step's exit code is not that of its command.
#pragma once

namespace pipeline::agent {

/// Tells that the command cannot be executed.
/// @param error errno of execvp(3)
/// @return the exit code, 126 or 127
int write_not_executed(int error);

/// Tells that a signal has ended the stager, so that the outputs are not uploaded. Another attempt
/// of the step may succeed.
void write_stager_killed(int signal);

}  // namespace pipeline::agent

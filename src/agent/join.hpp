/// @file
/// A command beside a running process of a step, on the same machine or in the same container.
#pragma once

namespace pipeline::agent {

/// Executes a command with the variables and in the folder of a running process: that which the
/// agent of this container has started as a rank, or the first that was started with these
/// variables. `arguments` are the rank, or variables (`NAME=VALUE`) and `--`; then the command.
/// Returns 125 if there is no such process, 126 or 127 if there is no such command.
int run_join(char** arguments);

}  // namespace pipeline::agent

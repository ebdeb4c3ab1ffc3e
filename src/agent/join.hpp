/// @file
/// A command beside a running process of a step, on the same machine or in the same container.
#pragma once

namespace pipeline::agent {

/// Executes a command with the variables and in the folder of a running process. `arguments` are
/// the rank of the process and the command, or `NAME=VALUE...` for variables of the process, `--`,
/// and the command. Among several processes with these variables, the topmost is selected.
/// @return 125 if there is no such process, 127 if there is no such command, and 126 if the command
/// cannot be executed; does not return on success
int run_join(char** arguments);

}  // namespace pipeline::agent

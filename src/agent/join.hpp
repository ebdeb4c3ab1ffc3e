/// @file
/// A command beside a running process of a step with nodes, in the same container.
#pragma once

namespace pipeline::kubernetes_api {

/// Executes the command with the variables and in the folder of the process that the agent of this
/// container has started as this rank. Returns 125 if there is none, 126 or 127 if there is no such
/// command.
int run_join(const char* rank, char** command);

}  // namespace pipeline::kubernetes_api

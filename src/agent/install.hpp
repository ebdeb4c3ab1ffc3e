/// @file
/// Installs the agent for the containers of a pod that start later.
#pragma once

namespace pipeline::agent {

/// Copies this program to the file at once, replacing an earlier one: a failed container is
/// restarted. @return the exit code; messages go to standard error
int install(const char* path);

}  // namespace pipeline::agent

/// @file
/// Installs the agent for the containers of a pod that start later.
#pragma once

namespace pipeline::agent {

/// Copies this program to the file atomically. Replaces an existing file: a container that failed
/// after the copy may run again. @return the exit code; messages go to standard error
int install(const char* path);

}  // namespace pipeline::agent

/// @file
/// Looks whether a service accepts connections, from inside of its container or pod.
#pragma once

namespace pipeline::agent {

/// Returns 0 if the port accepts connections at an address of this container that is not only its
/// own (127.0.0.1), as at that of its network; with a path, if it answers that by HTTP with a
/// status below 400. Otherwise prints why not, and returns 1.
/// @param path null: a connection is enough
int look_if_ready(const char* port, const char* path);

}  // namespace pipeline::agent

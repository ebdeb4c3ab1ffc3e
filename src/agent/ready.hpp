/// @file
/// Checks from inside a service's container or pod whether the service accepts connections.
#pragma once

namespace pipeline::agent {

/// Returns 0 if the port accepts connections at an IPv4 address of this container that others can
/// reach, that is, not only at 127.0.0.1. With a path, the port must also answer a GET of the path
/// by HTTP with a status below 400. Otherwise prints why the service is not ready, and returns 1.
/// @param path null: a connection is enough
int look_if_ready(const char* port, const char* path);

}  // namespace pipeline::agent

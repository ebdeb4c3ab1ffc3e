/// @file
/// A pod on the user's terminal.
#pragma once

#include <string>

#include "kubernetes_api/client.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Connects this process's standard streams with those of a pod's running container, in which the
/// agent starts a shell. Returns when the container has closed its output. Throws ApiError and
/// TransportError.
async::Task<> connect_pod(kubernetes_api::Client& client, std::string pod, bool has_terminal);

}  // namespace pipeline::orchestrators::kubernetes

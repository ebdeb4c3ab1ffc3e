/// @file
/// Explains errors of sockets, TCP, TLS and ssh to an engine, and gives advice.
#pragma once

#include <string>

#include "docker/engine_api.hpp"

namespace pipeline::docker {

/// Thrown if no engine answers.
class UnreachableEngine : public core::EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

/// Returns the error, with advice for its cause.
/// @param why the transport's message: from curl, or from ssh and the remote command
[[nodiscard]] UnreachableEngine unreachable(const Endpoint& endpoint, const std::string& why);

}  // namespace pipeline::docker

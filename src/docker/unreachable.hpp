/// @file
/// Why an engine cannot be reached, and what to do: sockets, TCP, TLS and ssh each fail in their
/// own words.
#pragma once

#include <string>

#include "docker/engine_api.hpp"

namespace pipeline::docker {

/// @param why what the transport said: curl, or ssh and what it ran over there
[[nodiscard]] core::EnvironmentError unreachable(const Endpoint& endpoint, const std::string& why);

}  // namespace pipeline::docker

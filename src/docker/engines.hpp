/// @file
/// The engines of a run: those that a profile lists, or else the engine that docker's own client
/// would use.
#pragma once

#include <string>
#include <vector>

#include <pipeline/settings.hpp>

#include "docker/engine_api.hpp"

namespace pipeline::docker {

/// The key of the list in a profile, and the field of an orchestrator's connection.
inline constexpr const char* engines_field = "engines";

/// An engine of a run.
struct RunEngine {
  Endpoint endpoint;
  /// Name or IP address at which containers on other engines reach this engine's machine; empty:
  /// the host of the endpoint.
  std::string address;
};

/// Returns the engines that the connection lists; without a list, the engine of find_endpoint().
/// Steps without `nodes` run on the first engine.
std::vector<RunEngine> find_engines(const StringMap& connection);

/// Returns the host in `ssh://me@gpu2:22/run/x.sock` or `tcp://gpu2:2376`; empty for a socket of
/// this machine.
std::string host_of_endpoint(const std::string& url);

}  // namespace pipeline::docker

/// @file
/// The engines that a run's containers are on: those that a profile lists, or that of docker's own
/// client.
#pragma once

#include <string>
#include <vector>

#include <pipeline/settings.hpp>

#include "docker/engine_api.hpp"

namespace pipeline::docker {

/// The key of the list in a profile, and the field of an orchestrator's connection.
inline constexpr const char* engines_field = "engines";

struct EngineAt {
  Endpoint endpoint;
  /// Name or IP address at which containers on other engines reach this one's machine; empty: that
  /// of the endpoint.
  std::string address;
};

/// Returns the engines that the connection lists, the first of which runs steps without nodes;
/// without a list, that of find_endpoint().
std::vector<EngineAt> find_engines(const StringMap& connection);

/// Returns the host in `ssh://me@gpu2:22/run/x.sock` or `tcp://gpu2:2376`; empty for a socket of
/// this machine.
std::string host_of_endpoint(const std::string& url);

}  // namespace pipeline::docker

/// @file
/// The descriptions of an attempt's services for the engine. Pure: makes no requests.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrators/docker/container_spec.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Label of a service's container, with the service's name; the attempt's network also has the
/// label, with an empty value.
inline constexpr const char* service_label = "pipe.service";

/// Returns the body of POST /networks/create. With the step's setting `network: none`, the network
/// has no connection to the outside.
nlohmann::json network_body(const AttemptSpec& attempt, const ContainerOptions& options);

/// Returns the body of POST /containers/create for the service, which may have secrets and must
/// not be shown.
/// @param image reference or identifier
nlohmann::json service_body(const AttemptSpec& attempt, const ContainerOptions& options,
                            const std::string& name, const std::string& image);

/// Returns the command whose exit code in the service's container is 0 once the service is ready;
/// empty if the container has no program that can check its port.
std::vector<std::string> readiness_check(const ServiceReady& ready,
                                         const ContainerOptions& options);

/// Returns the network that a step's container is created in. If the attempt has another network,
/// the container joins that afterwards.
std::string first_network(const DockerSettings& docker, const ContainerOptions& options);

}  // namespace pipeline::orchestrators::docker_engine

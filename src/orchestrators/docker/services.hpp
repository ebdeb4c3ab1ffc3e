/// @file
/// Runs an attempt with its services.
#pragma once

#include "orchestrators/docker/container_run.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Starts the attempt's services in a network of their own, runs its container in there once all
/// of them are ready, and begins the removal of services and network. A service that ends earlier
/// ends the attempt with it. Throws as run_container() does.
/// @param images of the services, by name: references or identifiers
async::Task<AttemptResult> run_with_services(const RunContext& context, ContainerOptions& options,
                                             const StringMap& images);

}  // namespace pipeline::orchestrators::docker_engine

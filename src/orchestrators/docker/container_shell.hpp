/// @file
/// A container on the user's terminal.
#pragma once

#include "docker/engine_api.hpp"
#include "orchestrators/docker/container_spec.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Runs Attempt::shell in a container as the attempt's, connected with the standard streams of this
/// process, and removes it. Returns the exit code, or the failure to start.
/// @param image name of the image, for messages
async::Task<AttemptResult> run_shell(docker::EngineApi& engine, const Attempt& attempt,
                                     ContainerOptions& place, std::string image);

}  // namespace pipeline::orchestrators::docker_engine

/// @file
/// Runs one container from its creation to its removal.
#pragma once

#include "docker/engine_api.hpp"
#include "orchestrators/docker/container_spec.hpp"
#include "orchestrators/removals.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Runs the attempt in a container of its own, or joins the one that an earlier driver of the same
/// attempt has left. When this returns or throws, the container has ended and its removal has
/// begun. Throws the log's exceptions, and EnvironmentError if the engine is lost.
/// @param options its `elsewhere` is set if the engine turns out not to see this machine's files
/// @param image name of the image, for messages
async::Task<AttemptResult> run_container(docker::EngineApi& engine, const Attempt& attempt,
                                         ContainerOptions& options, const std::string& image,
                                         Removals& removals);

}  // namespace pipeline::orchestrators::docker_engine

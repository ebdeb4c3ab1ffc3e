/// @file
/// One container from its making to its removal.
#pragma once

#include "docker/engine_api.hpp"
#include "orchestrators/docker/container_spec.hpp"
#include "orchestrators/removals.hpp"

namespace pipeline::orchestrators {

/// Runs the attempt in a container of its own, or joins the one that an earlier driver of the same
/// attempt has left. Whatever happens, the container has ended, and its removal has begun. Throws
/// what the log throws, and EnvironmentError when the engine is lost.
/// @param place its `elsewhere` is set when that turns out to be so
/// @param image for messages: the image's name
async::Task<AttemptResult> run_container(docker::EngineApi& engine, const Attempt& attempt,
                                         ContainerOptions& place, const std::string& image,
                                         Removals& removals);

}  // namespace pipeline::orchestrators

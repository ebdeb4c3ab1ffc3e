/// @file
/// Files that a step with a `user:` of its own leaves in the attempt's folders. They belong to that
/// user, so a `pipe` that is not root can neither store nor remove what is in their folders.
#pragma once

#include "docker/engine_api.hpp"
#include "orchestrators/docker/container_spec.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Gives the attempt's outputs and scratch files to the invoking user, by `chown` of the step's
/// image in a container as root, if some of them belong to another one. An image without `chown`
/// leaves them as they are; the run then reports what it cannot remove.
async::Task<> take_over_files(docker::EngineApi& engine, const AttemptSpec& attempt,
                              const ContainerOptions& place);

}  // namespace pipeline::orchestrators::docker_engine

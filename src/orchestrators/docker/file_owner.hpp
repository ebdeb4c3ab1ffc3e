/// @file
/// Changes the owner of files that a step with a `user:` of its own leaves in the attempt's
/// folders. A `pipe` that is not root can neither store nor remove files in that user's folders.
#pragma once

#include "docker/engine_api.hpp"
#include "orchestrators/docker/container_spec.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Gives the attempt's outputs and scratch files to the invoking user, if some of them belong to
/// another user. Runs `chown` of the step's image in a container as root. If the image has no
/// `chown`, the files stay as they are, and the run reports those that it cannot remove.
async::Task<> take_over_files(docker::EngineApi& engine, const AttemptSpec& attempt,
                              const ContainerOptions& options);

}  // namespace pipeline::orchestrators::docker_engine

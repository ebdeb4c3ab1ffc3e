/// @file
/// The paths of a step's files in a container or pod, the variables that each container gets, and
/// the settings that change what a step does in an image.
#pragma once

#include <string>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::containers {

/// The folder of pipe's files in a container, and the folder below it that HOME and TMPDIR name.
inline const std::string container_folder = "/pipe", container_scratch = "/pipe/scratch";
/// Returns the paths at which a step finds its files in its container.
const Layout& container_layout();

/// Adds the variables of every container that neither the step nor `docker.environment` sets.
/// @param gpus how many GPUs the container sees
void add_defaults(StringMap& variables, const AttemptSpec& attempt, std::size_t gpus);

/// Returns the settings that change what a step does in an equal image, as one text for a digest.
std::string runtime_part(const DockerSettings& settings);

}  // namespace pipeline::orchestrators::containers

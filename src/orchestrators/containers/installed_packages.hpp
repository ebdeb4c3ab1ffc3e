/// @file
/// Lists the Python packages of an image, in a short-lived container.
#pragma once

#include <string>

#include <pipeline/settings.hpp>

#include "docker/engine_api.hpp"

namespace pipeline::orchestrators::containers {

/// Returns one line for each package, sorted: its name, its version and, if it was installed from a
/// repository, its origin. If the packages of the image cannot be listed, returns the image's id,
/// which no other machine has.
/// @param image  `sha256:...` of an image that the engine has
/// @param labels labels of the container, so that it is found if this driver dies
async::Task<std::string> installed_packages(docker::EngineApi& engine, std::string image,
                                            StringMap labels);

}  // namespace pipeline::orchestrators::containers

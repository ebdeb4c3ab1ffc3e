/// @file
/// The Python packages of an image: a short container lists them.
#pragma once

#include <string>

#include <pipeline/settings.hpp>

#include "docker/engine_api.hpp"

namespace pipeline::orchestrators {

/// A line each, sorted: name, version and, of one from a repository, where it came from. Of an
/// image whose packages cannot be listed its id alone, which no other machine has.
/// @param image  `sha256:...`, one that the engine has
/// @param labels of the container, so that it is found if this driver dies
async::Task<std::string> installed_packages(docker::EngineApi& engine, std::string image,
                                            StringMap labels);

}  // namespace pipeline::orchestrators

/// @file
/// A container that looks at something and is gone.
#pragma once

#include <string>
#include <utility>

#include "docker/engine_api.hpp"

namespace pipeline::orchestrators {

/// What the container printed (its first 4 MiB), and its exit code; it is gone afterwards, whatever
/// happens. Throws EngineError.
async::Task<std::pair<std::string, int>> run_to_end(docker::EngineApi& engine, std::string name,
                                                    nlohmann::json body);

}  // namespace pipeline::orchestrators

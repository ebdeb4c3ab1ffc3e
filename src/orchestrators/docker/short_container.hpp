/// @file
/// Runs a short-lived container and returns its output.
#pragma once

#include <string>
#include <utility>

#include "docker/engine_api.hpp"

namespace pipeline::orchestrators {

/// Returns the container's output (the first 4 MiB) and its exit code, and removes the container in
/// any case. Throws EngineError.
async::Task<std::pair<std::string, int>> run_to_end(docker::EngineApi& engine, std::string name,
                                                    nlohmann::json body);

}  // namespace pipeline::orchestrators

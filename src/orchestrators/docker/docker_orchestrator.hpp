/// @file
/// Runs steps in containers of a Docker Engine or Podman.
#pragma once

#include <memory>

#include "orchestrators/options.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

std::unique_ptr<Orchestrator> make_docker_orchestrator(asio::io_context& loop,
                                                       OrchestratorOptions options);

}  // namespace pipeline::orchestrators

/// @file
/// Runs steps as Jobs of a Kubernetes cluster.
#pragma once

#include <memory>

#include "orchestrators/options.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

std::unique_ptr<Orchestrator> make_kubernetes_orchestrator(asio::io_context& loop,
                                                           OrchestratorOptions options);

}  // namespace pipeline::orchestrators

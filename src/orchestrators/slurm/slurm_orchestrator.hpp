/// @file
/// Runs steps as jobs of a Slurm cluster.
#pragma once

#include <memory>

#include "orchestrators/options.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

std::unique_ptr<Orchestrator> make_slurm_orchestrator(asio::io_context& loop,
                                                      OrchestratorOptions options);

}  // namespace pipeline::orchestrators

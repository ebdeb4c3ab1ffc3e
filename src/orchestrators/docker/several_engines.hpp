/// @file
/// Steps on several engines: the nodes of a step are dealt to them, and meet in the networks of the
/// engines' machines. Other steps run on the first engine, or on the one whose GPUs they have.
#pragma once

#include <memory>
#include <vector>

#include "docker/engines.hpp"
#include "orchestrators/options.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::docker_engine {

/// @param engines two or more
std::unique_ptr<Orchestrator> make_several_engines(asio::io_context& loop,
                                                   const OrchestratorOptions& options,
                                                   std::vector<docker::EngineAt> engines);

}  // namespace pipeline::orchestrators::docker_engine

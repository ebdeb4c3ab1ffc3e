/// @file
/// Runs steps on several engines. The nodes of a step are distributed over the engines, and use the
/// networks of the engines' machines. A step without nodes runs on the engine whose GPUs it holds,
/// or else on the first engine.
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
                                                   std::vector<docker::RunEngine> engines);

}  // namespace pipeline::orchestrators::docker_engine

/// @file
/// Adapts a user's Executor to the orchestrator port.
#pragma once

#include <memory>

#include <pipeline/run.hpp>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// Returns an orchestrator whose attempts `executor` runs; the executor must outlive it.
std::unique_ptr<Orchestrator> make_executor_orchestrator(asio::io_context& loop,
                                                         Executor& executor);

}  // namespace pipeline::orchestrators

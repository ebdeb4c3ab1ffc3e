/// @file
/// Executes a run from its spec to its end.
#pragma once

#include "engine/options.hpp"
#include "engine/services.hpp"
#include "engine/types.hpp"

namespace pipeline::engine {

/// Runs the pipeline. Events are published to `events` after they are persisted. Never throws for a
/// failed step; throws InputError and EnvironmentError if the run cannot start.
async::Task<RunSummary> run(Services services, EventSink& events, core::CancelSource& cancel,
                            EngineOptions options);

/// Does everything that run() does before the first step begins, prepares all environments, and
/// records the run with `options.driver`, which later calls run() with `resume`. Also throws
/// BuildError; if it throws, nothing is recorded.
async::Task<> prepare_detached(Services services, EventSink& events, core::CancelSource& cancel,
                               EngineOptions options);

}  // namespace pipeline::engine

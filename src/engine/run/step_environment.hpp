/// @file
/// The environment of a step, with the id that is a part of the step's key.
#pragma once

#include <pipeline/spec.hpp>

#include "engine/run_context.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::engine {

/// Returns the step's environment as Orchestrator::environment() describes it, which builds
/// nothing. Throws InputError for errors in the step's settings, at the line of the step. In a run
/// that shares results with other machines, the id is that of shared_environment().
async::Task<orchestrators::Environment> environment_of(const RunContext& context,
                                                       const StepSpec& step);

/// Returns the environment with the id under which machines share results. Making an environment
/// may choose the versions of its packages (`resolves`): its id then also covers these versions,
/// and is empty until the environment is ready. Other environments are returned unchanged.
async::Task<orchestrators::Environment> shared_environment(
    orchestrators::Orchestrator& orchestrator, const StepSpec& step,
    orchestrators::Environment environment);

}  // namespace pipeline::engine

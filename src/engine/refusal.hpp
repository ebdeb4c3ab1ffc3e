/// @file
/// Reports errors of a pipeline's steps that prevent a run.
#pragma once

#include <filesystem>
#include <vector>

#include "core/diagnostic.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::engine {

/// Throws InputError with all diagnostics, each at the line where its step begins; returns if there
/// are none.
void refuse(std::vector<core::Diagnostic> wrong, const std::filesystem::path& file);

/// Orchestrator::environment(); what is wrong with the step's settings is reported at its line.
/// @param is_shared the id is for results that machines share: see shared_environment()
async::Task<orchestrators::Environment> environment_of(orchestrators::Orchestrator& orchestrator,
                                                       const StepSpec& step,
                                                       const std::filesystem::path& file,
                                                       bool is_shared);

/// Where results are shared, the id of an environment that resolves covers the packages that it
/// has; until it is ready, it has no id. Others stay as they are.
async::Task<orchestrators::Environment> shared_environment(
    orchestrators::Orchestrator& orchestrator, const StepSpec& step,
    orchestrators::Environment environment);

}  // namespace pipeline::engine

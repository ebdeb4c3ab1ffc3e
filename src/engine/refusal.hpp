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

/// Calls Orchestrator::environment(); reports errors of the step's settings at its line.
/// @param is_shared the id is for results that machines share: see shared_environment()
async::Task<orchestrators::Environment> environment_of(orchestrators::Orchestrator& orchestrator,
                                                       const StepSpec& step,
                                                       const std::filesystem::path& file,
                                                       bool is_shared);

/// Returns the environment for results that machines share. If it has packages whose versions were
/// chosen when it was made (`resolves`), its id also covers these packages, and is empty until the
/// environment is ready. Other environments are returned unchanged.
async::Task<orchestrators::Environment> shared_environment(
    orchestrators::Orchestrator& orchestrator, const StepSpec& step,
    orchestrators::Environment environment);

}  // namespace pipeline::engine

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
async::Task<orchestrators::Environment> environment_of(orchestrators::Orchestrator& orchestrator,
                                                       const StepSpec& step,
                                                       const std::filesystem::path& file);

}  // namespace pipeline::engine

/// @file
/// Reports errors of a pipeline's steps that prevent a run.
#pragma once

#include <vector>

#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"
#include "engine/run_context.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::engine {

/// Returns the texts of the pipeline's file and of the included files, indexed by Span::file. The
/// pipeline of a program has one entry without a name and a text. Throws EnvironmentError.
std::vector<core::SourceText> sources_of(const PipelineSpec& pipeline);

/// Sets column and length of each span to the key with which the span's line begins.
void mark_keys(std::vector<core::Diagnostic>& diagnostics,
               const std::vector<core::SourceText>& sources);

/// Throws InputError if there are diagnostics, each with its span at the key of its line.
void refuse(std::vector<core::Diagnostic> diagnostics, const PipelineSpec& pipeline);

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

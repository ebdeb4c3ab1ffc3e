/// @file
/// Reports errors of a pipeline's steps that prevent a run.
#pragma once

#include <vector>

#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"
#include "engine/run_context.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::engine {

/// Returns the pipeline's file and the included ones, in the order of Span::file; one without a
/// name and text for a program. Throws EnvironmentError.
std::vector<core::SourceText> sources_of(const PipelineSpec& pipeline);

/// Widens each span, which has only a line, to the key with which the line begins.
void mark_keys(std::vector<core::Diagnostic>& wrong, const std::vector<core::SourceText>& sources);

/// Throws InputError with all diagnostics, if any, each at the line where its step begins.
void refuse(std::vector<core::Diagnostic> wrong, const PipelineSpec& pipeline);

/// Calls Orchestrator::environment(), which builds nothing; reports errors of the step's settings
/// at its line. With a remote cache, the id is that of shared_environment().
async::Task<orchestrators::Environment> environment_of(const RunContext& context,
                                                       const StepSpec& step);

/// Returns the environment for results that machines share. If it has packages whose versions were
/// chosen when it was made (`resolves`), its id also covers these packages, and is empty until the
/// environment is ready. Other environments are returned unchanged.
async::Task<orchestrators::Environment> shared_environment(
    orchestrators::Orchestrator& orchestrator, const StepSpec& step,
    orchestrators::Environment environment);

}  // namespace pipeline::engine

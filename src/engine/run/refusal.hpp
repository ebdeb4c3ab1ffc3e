/// @file
/// Reports errors of a pipeline's steps that prevent a run.
#pragma once

#include <vector>

#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"

namespace pipeline::engine {

/// Returns the texts of the pipeline's file and of the included files, indexed by Span::file. The
/// pipeline of a program has one entry without a name and a text. Throws EnvironmentError.
std::vector<core::SourceText> sources_of(const PipelineSpec& pipeline);

/// Sets column and length of each span to the key with which the span's line begins.
void mark_keys(std::vector<core::Diagnostic>& diagnostics,
               const std::vector<core::SourceText>& sources);

/// Throws InputError if there are diagnostics, each with its span at the key of its line.
void refuse(std::vector<core::Diagnostic> diagnostics, const PipelineSpec& pipeline);

}  // namespace pipeline::engine

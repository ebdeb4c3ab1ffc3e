/// @file
/// Warnings about steps' commands that need no engine.
#pragma once

#include <vector>

#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"
#include "spec/pipeline_file.hpp"

namespace pipeline::driver {

/// Warns of scripts that steps run and that are in no folder of the pipeline.
std::vector<core::Diagnostic> check_scripts(const std::vector<const StepSpec*>& steps,
                                            spec::CodeResolver& resolver);

/// Warns of pipes in which `sh` ignores failures, missing scripts, and unused parameters.
std::vector<core::Diagnostic> check_commands(const PipelineSpec& pipeline,
                                             spec::CodeResolver& resolver);

}  // namespace pipeline::driver

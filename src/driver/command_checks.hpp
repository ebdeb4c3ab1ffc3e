/// @file
/// Warnings about steps' commands that need no engine.
#pragma once

#include <vector>

#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"
#include "spec/pipeline_file.hpp"

namespace pipeline::driver {

/// Warns of scripts that steps run and that are in no folder of the pipeline, and of signs of the
/// shell's in lists.
std::vector<core::Diagnostic> check_scripts(const std::vector<const StepSpec*>& steps,
                                            spec::CodeResolver& resolver);

/// Warns of files of code and inputs that stand for other files (Git LFS, git-annex), and of code
/// that is large.
std::vector<core::Diagnostic> check_files(const std::vector<const StepSpec*>& steps,
                                          spec::CodeResolver& resolver);
/// Returns an error for each command or parameter that no system can start a program with, and
/// warns of limits of memory with which no program starts.
std::vector<core::Diagnostic> check_sizes(const std::vector<const StepSpec*>& steps);

/// Warns of pipes in which `sh` ignores failures, missing scripts, and unused parameters.
std::vector<core::Diagnostic> check_commands(const PipelineSpec& pipeline,
                                             spec::CodeResolver& resolver);

}  // namespace pipeline::driver

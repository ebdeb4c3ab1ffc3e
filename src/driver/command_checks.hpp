/// @file
/// Checks of steps' commands, code and settings that need no engine.
#pragma once

#include <vector>

#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"
#include "spec/code_resolver.hpp"

namespace pipeline::driver {

/// Returns warnings about scripts that steps run and that the pipeline's folder lacks, and about
/// shell syntax in commands that are lists: those run without a shell.
std::vector<core::Diagnostic> check_scripts(const std::vector<const StepSpec*>& steps,
                                            spec::CodeResolver& resolver);

/// Returns warnings about files of code and inputs that only stand for other files (Git LFS,
/// git-annex), and about code that is large.
std::vector<core::Diagnostic> check_files(const std::vector<const StepSpec*>& steps,
                                          spec::CodeResolver& resolver);

/// Returns an error for each command or parameter that is too long to start a program with, and
/// warnings about memory limits with which no program starts.
std::vector<core::Diagnostic> check_sizes(const std::vector<const StepSpec*>& steps);

/// Returns warnings about settings of the build of a Dockerfile, where no step has a Dockerfile.
std::vector<core::Diagnostic> check_builds(const std::vector<const StepSpec*>& steps);

/// Returns the findings of the checks above but check_files(), and warnings about pipes in which
/// `sh` ignores failures and about unused parameters.
std::vector<core::Diagnostic> check_commands(const PipelineSpec& pipeline,
                                             spec::CodeResolver& resolver);

}  // namespace pipeline::driver

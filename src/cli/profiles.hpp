/// @file
/// Applies a profile to the options of a command.
#pragma once

#include <string>

#include "cli/options.hpp"

namespace pipeline::cli {

/// Sets the project of this process (core/project.hpp): the pipeline's folder, and whether the
/// command only looks.
void begin_project(const Options& options, const std::string& command);

/// Sets the options that the named profile sets and the command line does not. Throws InputError
/// for an unknown profile.
void use_profile(Options& options);

}  // namespace pipeline::cli

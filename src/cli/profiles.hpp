/// @file
/// Applies a profile to the options of a command.
#pragma once

#include "cli/options.hpp"

namespace pipeline::cli {

/// Sets the options that the named profile sets and the command line does not. Throws InputError
/// for an unknown profile.
void use_profile(Options& options);

}  // namespace pipeline::cli

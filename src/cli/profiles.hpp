/// @file
/// Profiles among the options of a command.
#pragma once

#include "cli/options.hpp"

namespace pipeline::cli {

/// Fills in what the named profile says and the command line does not. Throws InputError for an
/// unknown one.
void use_profile(Options& options);

}  // namespace pipeline::cli

/// @file
/// Applies a profile to the options of a command.
#pragma once

#include <string>
#include <vector>

#include "cli/options.hpp"

namespace pipeline::cli {

/// Sets the options that the named profile sets and the command line does not. Throws InputError
/// for an unknown profile.
void use_profile(Options& options);

/// Returns the servers of the user's own profiles and environment, to which credentials may go.
std::vector<std::string> named_servers();

}  // namespace pipeline::cli

/// @file
/// The parts of a clean-up that the user's options name.
#pragma once

#include "driver/clean_up.hpp"

namespace pipeline::driver {

/// Returns true if runs, and artifacts that no run needs any more, are to be removed.
bool cleans_runs(const CleanUp& wanted);

/// Throws InputError if nothing is named, or if options contradict one another.
void check_parts(const CleanUp& wanted);

}  // namespace pipeline::driver

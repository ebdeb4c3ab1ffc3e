/// @file
/// Continues a recorded run that has no driver any more.
#pragma once

#include <string>

#include "driver/run_driver.hpp"

namespace pipeline::driver {

/// Drives the run of this name to its end, with its recorded options, and returns that end. Takes
/// the Lease of a run that was handed to a cluster. Throws InputError if the run is being driven or
/// has ended.
/// @param background the terminal that this process, a driver in the background, leaves once the
/// run goes on; null: the run is shown at the terminal until it ends
RunEnd resume_run(Workspace& workspace, const std::string& name, RunObserver& observer,
                  Background* background);

}  // namespace pipeline::driver

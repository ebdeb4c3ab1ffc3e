/// @file
/// Continues a recorded run that has no driver any more.
#pragma once

#include <string>

#include "driver/run_driver.hpp"

namespace pipeline::driver {

/// Continues the run of this name with its recorded options, and returns its end. Takes the Lease
/// of a run that was handed to a cluster. Throws InputError if the run is being driven or has
/// ended.
/// @param background null: the run is shown until it ends
RunEnd resume_run(Workspace& workspace, const std::string& name, RunObserver& observer,
                  Background* background);

}  // namespace pipeline::driver

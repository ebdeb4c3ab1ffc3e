/// @file
/// The driver in a cluster: continues a detached run, also after any loss of its pod.
#pragma once

#include <string>

#include "driver/run_observer.hpp"
#include "driver/workspace.hpp"

namespace pipeline::driver {

/// Drives the run to its end, unless it has ended, and removes the Job of this process, which ends
/// the process. Throws InputError for a run that was not handed to a driver in a cluster.
void drive_in_cluster(Workspace& workspace, const std::string& name, RunObserver& observer);

}  // namespace pipeline::driver

/// @file
/// Starts a run that a driver in a cluster drives: does the work that needs this machine, then
/// hands the run over.
#pragma once

#include <string>

#include "driver/run_observer.hpp"
#include "driver/workspace.hpp"

namespace pipeline::driver {

/// A run that was handed to a driver in a cluster.
struct DetachedRun {
  std::string run;
  std::filesystem::path state;
  RunStatus status = RunStatus::running;  ///< The run may have ended already.
  store::LeaseId lease;
  std::string holder;     ///< The pod that drives the run; empty: the driver has not started yet.
  std::string waits_for;  ///< Why the driver has not started, if known.
};

/// Starts the run, and waits some time for its driver. Throws InputError for steps that a driver in
/// a cluster cannot run, and Interrupted if the user stops it before the run begins.
DetachedRun start_detached(const Workspace& workspace, RunObserver& observer);

}  // namespace pipeline::driver

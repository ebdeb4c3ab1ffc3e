/// @file
/// Stops a run through its driver, wherever that is.
#pragma once

#include <csignal>
#include <string>

#include "driver/workspace.hpp"

namespace pipeline::driver {

/// The signal with which a driver stops its run at once.
constexpr int stop_at_once = SIGUSR1;

struct CancelRequest {
  bool now = false;    ///< Kills the steps.
  bool force = false;  ///< The user asserts that the driver is gone.
};

struct CancelledRun {
  store::RunRecord run;
  std::string how;  ///< For the user: `stopped`, or that its driver was gone.
};

/// Stops the run of this name and waits for its end. If its driver is gone, removes what the run
/// has left. Throws InputError if the run has ended or cannot be stopped from here.
CancelledRun cancel_run(Workspace& workspace, const std::string& name, const CancelRequest& wanted);

}  // namespace pipeline::driver

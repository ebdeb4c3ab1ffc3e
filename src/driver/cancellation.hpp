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
  std::string how;
};

/// Stops the run of this name and waits for its end. Removes what it has left if its driver is
/// gone. Throws InputError if it has ended or cannot be stopped from here.
CancelledRun cancel_run(Workspace& workspace, const std::string& name, const CancelRequest& wanted);

}  // namespace pipeline::driver

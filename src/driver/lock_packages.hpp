/// @file
/// Writes pipeline.lock: the packages and the data of all steps.
#pragma once

#include "driver/run_observer.hpp"
#include "driver/session.hpp"

namespace pipeline::driver {

/// Locks the packages and data that the selected steps ask for. If the lock file is frozen, nothing
/// is written, and an InputError lists everything that the file lacks. Throws Interrupted if the
/// observer stops the work.
void lock_packages(Session& session, RunObserver& observer);

}  // namespace pipeline::driver

/// @file
/// Writes pipeline.lock: the packages and the data of all steps.
#pragma once

#include "driver/run_observer.hpp"
#include "driver/session.hpp"

namespace pipeline::driver {

/// Locks what the selected steps ask for. With `frozen` nothing is written, and InputError lists
/// all that the file lacks. Throws Interrupted if it is stopped.
void lock_packages(Session& session, RunObserver& observer);

}  // namespace pipeline::driver

/// @file
/// Stops loops that do not belong to a coroutine, and so have no CancelSource: those of the pool's
/// threads, which read and hash files, and those of the event loop's thread outside of coroutines.
#pragma once

#include "core/error.hpp"

namespace pipeline::core {

/// Thrown by check_reading() when the user has stopped the process at once.
class Stopped : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

/// Makes the loops of this process throw Stopped, because the process is to end at once. May be
/// called by a signal handler.
void stop_reading() noexcept;
/// Permits loops again, for a run that begins now.
void permit_reading() noexcept;
bool is_reading_stopped() noexcept;
/// Throws Stopped after stop_reading(). Loops call this function, for example between two
/// pieces of a file.
void check_reading();

}  // namespace pipeline::core

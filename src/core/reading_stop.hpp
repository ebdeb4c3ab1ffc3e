/// @file
/// The stop of loops that no coroutine ends: threads of the pool that read and hash files, and what
/// the event loop's own thread does before or between its coroutines.
#pragma once

#include "core/error.hpp"

namespace pipeline::core {

/// The user has stopped the process at once while it was in such a loop.
class Stopped : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

/// Makes such loops of this process give up, for a process that is to end at once. May be called by
/// a handler of signals.
/// @param is_stopped false: they go on again
void stop_reading(bool is_stopped) noexcept;
bool is_reading_stopped() noexcept;
/// Throws Stopped if reading is stopped; to be called between pieces of a file, for example.
void check_reading();

}  // namespace pipeline::core

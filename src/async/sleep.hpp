/// @file
/// A pause of a coroutine.
#pragma once

#include "async/task.hpp"
#include "core/cancel.hpp"

namespace pipeline::async {

/// Pauses for `time`; returns early once `cancel`, if not null, is stopped.
Task<> sleep(std::chrono::steady_clock::duration time, core::CancelSource* cancel = nullptr);

}  // namespace pipeline::async

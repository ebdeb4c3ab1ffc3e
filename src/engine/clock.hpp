/// @file
/// Durations are measured by the monotonic clock; the wall clock is used only for dates.
#pragma once

#include <chrono>

#include <pipeline/events.hpp>

namespace pipeline::engine {

using Clock = std::chrono::steady_clock;

/// Interval at which the engine looks for changes by other processes.
inline constexpr std::chrono::milliseconds poll_interval(200);

inline WallTime wall_now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}
inline std::chrono::milliseconds since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
}

}  // namespace pipeline::engine

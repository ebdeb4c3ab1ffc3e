/// @file
/// The activity of processes so far.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace pipeline::core {

struct Activity {
  std::chrono::microseconds cpu{};
  std::uint64_t bytes = 0;  ///< Read and written.
  /// When the processes last made progress, if somebody beside them has judged that; the counts
  /// above are not known then.
  std::optional<std::chrono::steady_clock::time_point> progressed = {};
};

/// Returns whether processes have made progress in a time. A process that waits for others computes
/// a little nevertheless, because its threads look around: progress is a fiftieth of a CPU, or to
/// read or write more than that needs.
/// @param before what they had done when that time began
inline bool is_progress(const Activity& before, const Activity& done,
                        std::chrono::nanoseconds time) {
  constexpr std::chrono::milliseconds least_cpu{50};
  constexpr int cpu_share = 50;
  constexpr std::uint64_t least_bytes = 64 << 10;
  const auto cpu = done.cpu - before.cpu;
  const bool has_computed = cpu >= least_cpu && cpu * cpu_share >= time;
  // Less than what was counted before: a process has ended, and another one may have begun.
  return has_computed || done.bytes >= before.bytes + least_bytes || done.bytes < before.bytes ||
         done.cpu < before.cpu;
}

}  // namespace pipeline::core

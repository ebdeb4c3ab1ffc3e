/// @file
/// The CPU time and the transfers of processes so far, to judge whether they make progress.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace pipeline::core {

struct Activity {
  std::chrono::microseconds cpu{};
  std::uint64_t bytes = 0;  ///< Read and written.
  /// When the processes last made progress, if the agent beside them has judged that; the counts
  /// above are then not known.
  std::optional<std::chrono::steady_clock::time_point> progressed = {};
};

/// Returns whether processes have made progress. Threads that only wait also compute a little,
/// because they poll: progress is at least 50 ms of CPU time and a fiftieth of a CPU, or 64 KiB
/// read or written.
/// @param before the activity at the beginning of `elapsed`
/// @param after the activity at its end
inline bool is_progress(const Activity& before, const Activity& after,
                        std::chrono::nanoseconds elapsed) {
  constexpr std::chrono::milliseconds least_cpu{50};
  constexpr int cpu_share = 50;
  constexpr std::uint64_t least_bytes = 64 << 10;
  const auto cpu = after.cpu - before.cpu;
  const bool has_computed = cpu >= least_cpu && cpu * cpu_share >= elapsed;
  // A smaller count means that a process has ended, and that another one may have begun.
  return has_computed || after.bytes >= before.bytes + least_bytes || after.bytes < before.bytes ||
         after.cpu < before.cpu;
}

}  // namespace pipeline::core

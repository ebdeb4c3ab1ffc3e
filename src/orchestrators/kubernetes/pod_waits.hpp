/// @file
/// The calls that the processes of a pod's step wait in, as its agent writes them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::orchestrators::kubernetes {

/// The last report of an agent about its running step.
struct PodReport {
  std::string waits;  ///< Of a stalled step, for read_pod_waits(); empty: none.
  /// When the step has last printed something, or made progress in silence.
  std::optional<std::chrono::steady_clock::time_point> progressed = {};
};

/// Reads the frame that the agent writes for a stalled step (agent/waits.hpp). Returns a line for
/// each process, as waits_of_processes() does, without unreadable ones.
/// @param text untrusted: a step can write to its agent's log
std::vector<std::string> read_pod_waits(std::string_view text);

}  // namespace pipeline::orchestrators::kubernetes

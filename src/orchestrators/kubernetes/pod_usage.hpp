/// @file
/// Resource usage of a step as its pod's agent measured it, and facts of the pod from the cluster.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Reads the agent's frame of the step's usage and GPUs into `result`.
/// @param text JSON, untrusted: a step can write to its agent's log
/// @return how long the step's process ran; nothing if the frame does not say so
std::optional<std::chrono::milliseconds> read_pod_usage(std::string_view text,
                                                        AttemptResult& result);

/// Returns how long the pod's init container with the stager, which fetches the step's files, took
/// by the cluster's clock: a whole number of seconds.
std::chrono::nanoseconds time_of_fetch(const nlohmann::json& pod);

}  // namespace pipeline::orchestrators::kubernetes

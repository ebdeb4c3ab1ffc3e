/// @file
/// What a pod's agent has measured of its step.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// Reads the frame in which the agent says what the step has used, and of which GPUs, and sets what
/// is in it.
/// @param text JSON, untrusted: a step can write to its agent's log
/// @return how long the step's process ran
std::optional<std::chrono::milliseconds> read_pod_usage(std::string_view text,
                                                        AttemptResult& result);

}  // namespace pipeline::orchestrators

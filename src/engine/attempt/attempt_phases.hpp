/// @file
/// How the time of an attempt is divided.
#pragma once

#include <chrono>

#include "core/usage.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::engine {

/// Where the orchestrator does not know when the command began and ended (`result.began`,
/// `result.ended`), all of its time, from `began` to `ended`, counts as the command's. A command
/// that was joined began before the attempt did here: it was not prepared.
core::Phases phases_of(const orchestrators::AttemptResult& result,
                       std::chrono::steady_clock::time_point start,
                       std::chrono::steady_clock::time_point began,
                       std::chrono::steady_clock::time_point ended,
                       std::chrono::steady_clock::time_point now);

}  // namespace pipeline::engine

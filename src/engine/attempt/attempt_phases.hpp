/// @file
/// The parts of an attempt's time.
#pragma once

#include <chrono>

#include "core/usage.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::engine {

/// Returns how long the attempt was prepared, moved its data, ran and stored its outputs. If the
/// orchestrator does not know when the command began and ended (`result.began`, `result.ended`),
/// the whole time that it ran the attempt, from `began` to `ended`, counts as the command's. A
/// command that an earlier driver had started has no time of preparation.
/// @param start when the attempt began
/// @param now   when its outputs were stored
core::Phases phases_of(const orchestrators::AttemptResult& result,
                       std::chrono::steady_clock::time_point start,
                       std::chrono::steady_clock::time_point began,
                       std::chrono::steady_clock::time_point ended,
                       std::chrono::steady_clock::time_point now);

}  // namespace pipeline::engine

/// @file
/// Resource usage of a container, as its engine counts it; the engine may be on another machine.
#pragma once

#include <nlohmann/json.hpp>

#include "core/usage.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Updates `usage` with an answer of `GET /containers/ID/stats`. CPU time and disk traffic since
/// the start are replaced; the peak of memory is the maximum. The zeros of a container that has
/// ended change nothing.
void add_engine_sample(const nlohmann::json& stats, core::Usage& usage);

}  // namespace pipeline::orchestrators::docker_engine

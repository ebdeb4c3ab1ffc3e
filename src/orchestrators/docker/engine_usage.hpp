/// @file
/// Resource usage of a container, from the accounts of its engine, which may be on another machine.
#pragma once

#include <nlohmann/json.hpp>

#include "core/usage.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Adds a sample of an engine's accounts (`GET /containers/ID/stats`): what has been used since the
/// start is replaced, the peak of memory is the largest. Those of a container that has ended, which
/// are zero, change nothing. @param stats the answer; other values in it are ignored
void add_engine_sample(const nlohmann::json& stats, core::Usage& usage);

}  // namespace pipeline::orchestrators::docker_engine

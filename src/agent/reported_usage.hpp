/// @file
/// Reads the usage that an agent reports of its step (UsageMeter::write()). The text is untrusted:
/// a step can write to its agent's files.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "core/usage.hpp"

namespace pipeline::agent {

/// Returns the member if it is a number that an agent writes: of microseconds, of at most 200
/// years.
std::optional<std::uint64_t> reported_count(const nlohmann::json& object, const char* name);
/// Sets the values that the object has, but for those of GPUs.
/// @return how long the step's process ran
std::optional<std::chrono::milliseconds> read_reported_usage(const nlohmann::json& object,
                                                             core::Usage& usage);

}  // namespace pipeline::agent

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

/// Returns the member if it is an unsigned integer of at most 2^53, which JSON readers can hold
/// exactly: microseconds of almost 300 years. Returns nothing for other values.
std::optional<std::uint64_t> reported_count(const nlohmann::json& object, const char* name);
/// Sets the members of `usage` that the object has, except those of GPUs.
/// @return how long the step's process ran
std::optional<std::chrono::milliseconds> read_reported_usage(const nlohmann::json& object,
                                                             core::Usage& usage);

}  // namespace pipeline::agent

/// @file
/// Reads named limits: how many units of each a machine has, and how many a step holds.
#pragma once

#include <map>
#include <string>

#include "settings/decode.hpp"

namespace pipeline::spec {

/// Maximum number of units; a larger number is treated as a mistake.
inline constexpr unsigned max_units = 10'000;

/// Reads `{license: 2}`. @param key `limits` or `uses`, for messages
std::map<std::string, unsigned> read_limits(const char* key, const core::Value& value,
                                            settings::Diagnostics& diagnostics);

/// Reads a number of units, 1 at least; returns 0 for anything else, which is reported.
unsigned read_units(const std::string& key, const core::Value& value,
                    settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec

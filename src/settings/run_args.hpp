/// @file
/// `run_args`: container options under the names of docker's Python SDK, and the permitted values
/// of each.
#pragma once

#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "settings/settings.hpp"

namespace pipeline::settings {

/// Decodes each option; reports errors. Where users have several notations, the result has one: a
/// size is in bytes (memswap_limit may be -1), extra_hosts is a list of `NAME:ADDRESS`, and ulimits
/// is `{NAME: {soft, hard}}`.
std::map<std::string, Json> decode_run_args(const core::Value& value, Diagnostics& diagnostics);
nlohmann::json run_args_schema();

}  // namespace pipeline::settings

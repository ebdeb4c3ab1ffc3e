/// @file
/// `run_args`: container options under the names of docker's Python SDK, and the permitted values
/// of each.
#pragma once

#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "settings/settings.hpp"

namespace pipeline::settings {

/// Decodes each option to one form: sizes become bytes (memswap_limit may be -1), extra_hosts a
/// list of `NAME:ADDRESS`, ulimits `{name: {soft, hard}}`; maps of texts stay maps.
std::map<std::string, Json> decode_run_args(const core::Value& value, Diagnostics& diagnostics);
nlohmann::json run_args_schema();

}  // namespace pipeline::settings

/// @file
/// `run_args`: the container options that may be given by docker's SDK names, and what each may
/// hold.
#pragma once

#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "settings/settings.hpp"

namespace pipeline::settings {

/// Decoded to one form each: sizes become bytes (memswap_limit may be -1), extra_hosts a list of
/// `NAME:ADDRESS`, ulimits `{name: {soft, hard}}`, maps of texts stay so.
std::map<std::string, Json> decode_run_args(const core::Value& value, Diagnostics& diagnostics);
nlohmann::json run_args_schema();

}  // namespace pipeline::settings

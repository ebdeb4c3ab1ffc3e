/// @file
/// Reads the hosts of a profile: `engines: [unix, ssh://gpu2, {host: tcp://gpu3:2376, ...}]`.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "settings/decode.hpp"

namespace pipeline::spec {

/// Returns the hosts as a list in the form of ConnectionField::Kind::hosts, without those that have
/// errors, which are reported. @param folder the folder that relative paths are resolved against
nlohmann::json read_hosts(const std::string& key, const core::Value& value,
                          const std::filesystem::path& folder, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec

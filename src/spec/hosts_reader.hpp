/// @file
/// Reads the hosts of a profile: `engines: [unix, ssh://gpu2, {host: tcp://gpu3:2376, ...}]`.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "settings/decode.hpp"

namespace pipeline::spec {

/// Returns a list as ConnectionField::Kind::hosts has it; an empty one for none, or for errors, all
/// of which are reported. @param folder resolves relative paths
nlohmann::json read_hosts(const std::string& key, const core::Value& value,
                          const std::filesystem::path& folder, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec

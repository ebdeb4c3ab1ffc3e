/// @file
/// The rights of containers that run programs of images.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace pipeline::docker {

/// Withholds, unless they are asked for, the rights that reach beyond the container: its files lie
/// in folders of this machine, where other users could use a program with the rights of root, a
/// device, or a file with capabilities.
/// @param host the body's `HostConfig`
void withhold_rights(nlohmann::json& host);

}  // namespace pipeline::docker

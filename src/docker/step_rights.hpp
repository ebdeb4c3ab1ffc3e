/// @file
/// The rights of containers that run programs of images.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace pipeline::docker {

/// Withholds rights by which a container can make files that are dangerous outside of it, unless
/// the settings ask for them. A container's files are in folders of this machine, where another
/// user could execute a set-user-ID program of root, open a device, or use a file's capabilities.
/// @param host the body's `HostConfig`
void withhold_rights(nlohmann::json& host);

}  // namespace pipeline::docker

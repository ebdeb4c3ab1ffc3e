/// @file
/// Attributes of this machine for placement constraints: what it knows of itself, and what its
/// owner says in `host.yaml`.
#pragma once

#include <filesystem>
#include <string_view>

#include "gpu/placement.hpp"

namespace pipeline::spec {

/// `instance_type`, `availability_zone` and `attributes: {NAME: VALUE}` as attributes. Throws
/// InputError with all that is wrong.
gpu::HostAttributes parse_host(std::string_view text, const std::filesystem::path& file);

/// $PIPE_HOST, else `pipe/host.yaml` in $XDG_CONFIG_HOME or ~/.config; empty where nobody has a
/// home.
std::filesystem::path host_file();

/// `ecs.os-type`, `ecs.cpu-architecture`, on Amazon EC2 `ecs.instance-type`, and what host_file()
/// says, which wins. The file may be missing, unless $PIPE_HOST names it.
gpu::HostAttributes host_attributes();

}  // namespace pipeline::spec

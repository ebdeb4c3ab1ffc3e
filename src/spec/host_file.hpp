/// @file
/// Attributes of this machine for placement constraints: detected ones, and those that its owner
/// declares in `host.yaml`.
#pragma once

#include <filesystem>
#include <string_view>

#include "gpu/placement.hpp"

namespace pipeline::spec {

/// Parses `instance_type`, `availability_zone` and `attributes: {NAME: VALUE}`. Throws InputError
/// with all errors of the text.
gpu::HostAttributes parse_host(std::string_view text, const std::filesystem::path& file);

/// Returns $PIPE_HOST, else `pipe/host.yaml` in $XDG_CONFIG_HOME or ~/.config; empty if there is no
/// home folder either.
std::filesystem::path host_file();

/// Returns `ecs.os-type`, `ecs.cpu-architecture`, on Amazon EC2 `ecs.instance-type`, and the
/// attributes of host_file(), which take precedence. Throws InputError if $PIPE_HOST names a
/// missing file.
gpu::HostAttributes host_attributes();

}  // namespace pipeline::spec

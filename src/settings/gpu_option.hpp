/// @file
/// Parses the text of docker's `--gpus`, which GitLab Runner's `gpus` accepts too. The grammar is
/// docker's (github.com/docker/cli, opts/gpus.go): one line of CSV; each field is KEY=VALUE or a
/// count.
///
/// Three notations that docker refuses are accepted here: `device=0,1` without the quotes of CSV
/// (docker reads device 0 *and* count 1, which the engine then rejects), a UUID or MIG device
/// without `device=`, and spaces around fields.
#pragma once

#include <string_view>
#include <vector>

#include "settings/accelerator.hpp"

namespace pipeline::settings {

/// Sets selection, count, devices, driver, capabilities and options of the request. Appends errors
/// to `problems`.
void read_gpu_option(std::string_view text, GpuRequest& request, std::vector<GpuProblem>& problems);

}  // namespace pipeline::settings

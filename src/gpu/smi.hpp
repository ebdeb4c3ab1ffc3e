/// @file
/// Lists the GPUs of a machine whose NVML is not accessible, from the output of `nvidia-smi` in a
/// container there.
#pragma once

#include <string>
#include <string_view>

#include "gpu/inventory.hpp"

namespace pipeline::gpu {

/// Returns a script for /bin/sh that runs nvidia-smi for everything that read_smi() parses; it ends
/// with nvidia-smi's exit code.
std::string_view smi_script();

/// Parses the script's output; returns no devices if nothing is understood.
Inventory read_smi(std::string_view printed);

}  // namespace pipeline::gpu

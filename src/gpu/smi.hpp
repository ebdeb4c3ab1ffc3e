/// @file
/// The GPUs of a machine whose NVML is out of reach, as `nvidia-smi` shows them in a container
/// there.
#pragma once

#include <string>
#include <string_view>

#include "gpu/inventory.hpp"

namespace pipeline::gpu {

/// A script for /bin/sh that asks nvidia-smi for all that read_smi() understands; it ends with
/// nvidia-smi's own exit code.
std::string_view smi_script();

/// The inventory in what the script printed; without devices where nothing of it is understood.
Inventory read_smi(std::string_view printed);

}  // namespace pipeline::gpu

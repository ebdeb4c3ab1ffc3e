/// @file
/// Applies the CUDA_VISIBLE_DEVICES of the user who starts `pipe`: GPUs that it hides from a CUDA
/// program are hidden from a run, too.
#pragma once

#include <string_view>

#include "gpu/inventory.hpp"

namespace pipeline::gpu {

/// Removes the devices that a value of CUDA_VISIBLE_DEVICES hides; the others keep their order and
/// their nvidia-smi indices. CUDA reads indices, UUIDs or their beginnings, up to the first that
/// names no device of the machine; the empty text hides all.
void remove_hidden(std::string_view visible, Inventory& inventory);

/// Removes the devices that this process's own CUDA_VISIBLE_DEVICES hides, if it is set.
void remove_hidden_by_environment(Inventory& inventory);

}  // namespace pipeline::gpu

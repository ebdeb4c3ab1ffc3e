/// @file
/// Applies the CUDA_VISIBLE_DEVICES of the user who starts `pipe`: GPUs that it hides from a CUDA
/// program are hidden from a run, too.
#pragma once

#include <string_view>

#include "gpu/inventory.hpp"

namespace pipeline::gpu {

/// Removes the devices that CUDA would not show; the others keep their order and their nvidia-smi
/// indices. The text is interpreted as by CUDA: indices, UUIDs or their prefixes, up to the first
/// that names no device of the machine; the empty text hides all.
void show_only(std::string_view visible, Inventory& inventory);

/// Applies this process's own CUDA_VISIBLE_DEVICES, if it is set.
void show_only_visible(Inventory& inventory);

}  // namespace pipeline::gpu

/// @file
/// CUDA_VISIBLE_DEVICES of whoever starts `pipe`: what it hides from a CUDA program is hidden from
/// a run, too.
#pragma once

#include <string_view>

#include "gpu/inventory.hpp"

namespace pipeline::gpu {

/// Leaves the devices that CUDA would show, in the order of their indices, which stay those of
/// nvidia-smi. As CUDA reads it: indices, UUIDs or what these begin with, up to the first that is
/// none of the machine's; so the empty text hides all.
void show_only(std::string_view visible, Inventory& inventory);

/// The same for this process's own CUDA_VISIBLE_DEVICES, if it has one.
void show_only_visible(Inventory& inventory);

}  // namespace pipeline::gpu

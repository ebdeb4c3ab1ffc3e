/// @file
/// Matches a GPU's name with the model that a user wrote.
#pragma once

#include <string_view>

namespace pipeline::gpu {

/// Returns true if the words of `wanted` are among those of the device's name, ignoring case:
/// `A100` matches `NVIDIA A100-SXM4-80GB` but not `NVIDIA A10`; `a100 80gb`, `RTX 4090` and
/// `Tesla-T4` work too.
bool model_matches(std::string_view wanted, std::string_view name);

}  // namespace pipeline::gpu

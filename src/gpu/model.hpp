/// @file
/// Matches a GPU's name and memory with the model and the size that a user wrote.
#pragma once

#include <cstdint>
#include <string_view>

namespace pipeline::gpu {

/// Returns true if the words of `wanted` are among those of the device's name, ignoring case:
/// `A100` matches `NVIDIA A100-SXM4-80GB` but not `NVIDIA A10`; `a100 80gb`, `RTX 4090` and
/// `Tesla-T4` work too.
bool model_matches(std::string_view wanted, std::string_view name);

/// Returns the smallest number of bytes that nvidia-smi reports for a GPU whose data sheet says
/// `size`: the driver and error correction use up to 8 %. An H100 of 80 GiB reports 81,559 MiB, a
/// T4 of 16 GiB 15,360 MiB, or 15,109 MiB with some drivers. A GPU of the next smaller size stays
/// below this bound: 11 GiB are less than 92 % of 12 GiB.
constexpr std::uint64_t min_reported_memory(std::uint64_t size) { return size / 100 * 92; }

}  // namespace pipeline::gpu

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

/// Returns the bytes that a GPU of a size, as its maker names it, reports at least: the driver and
/// error correction keep a part. An H100 of 80 GiB reports 81,559 MiB, a T4 of 16 GiB 15,360 MiB,
/// with some drivers 15,109 MiB; the next smaller size, 11 instead of 12 GiB, is below this.
constexpr std::uint64_t least_reported_memory(std::uint64_t size) { return size / 100 * 92; }

}  // namespace pipeline::gpu

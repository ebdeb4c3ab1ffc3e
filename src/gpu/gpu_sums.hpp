/// @file
/// Sums over the samples of a GPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/usage.hpp"

namespace pipeline::gpu {

struct GpuSums {
  double time = 0;       ///< Sum of the samples' weights.
  double used = 0;       ///< Sum of used bytes times weight.
  double load_time = 0;  ///< Sum of the weights of samples with a load.
  double load = 0;       ///< Sum of load times weight.
  double peak_load = 0;
  std::uint64_t peak_used = 0, memory = 0;  ///< Bytes; `memory` is the GPU's size.

  /// Adds a sample.
  /// @param weight time for which the sample stands
  /// @param share the GPU's load, 0 to 1; unset if not known
  void add(double weight, std::optional<double> share, std::uint64_t memory_used,
           std::uint64_t memory_of_all) {
    time += weight;
    used += weight * static_cast<double>(memory_used);
    peak_used = std::max(peak_used, memory_used);
    memory = memory_of_all;
    if (!share) return;
    load_time += weight;
    load += weight * *share;
    peak_load = std::max(peak_load, *share);
  }
  std::optional<double> mean_load() const {
    return load_time > 0 ? std::optional(load / load_time) : std::nullopt;
  }
  std::uint64_t mean_used() const {
    return time > 0 ? static_cast<std::uint64_t>(std::llround(used / time)) : 0;
  }
};

/// Returns the means and peaks of the samples.
inline core::GpuUsage usage_of(std::string uuid, const GpuSums& sums) {
  const auto mean = sums.mean_load();
  return {.uuid = std::move(uuid),
          .mean_load = mean,
          .peak_load = mean ? std::optional(sums.peak_load) : std::nullopt,
          .mean_memory = sums.mean_used(),
          .peak_memory = sums.peak_used,
          .memory = sums.memory};
}

}  // namespace pipeline::gpu

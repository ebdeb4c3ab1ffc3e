/// @file
/// What an attempt has used, and where its time went. Only what was measured is set.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::core {

/// What was in use of one of the attempt's GPUs, by samples that were taken while it ran.
struct GpuUsage {
  std::string uuid;
  /// Share of the time in which the GPU computed, 0 to 1. The driver does not tell it of MIG
  /// slices.
  std::optional<double> mean_load, peak_load;
  std::uint64_t mean_memory = 0, peak_memory = 0, memory = 0;  ///< Bytes; `memory` is all it has.
  bool operator==(const GpuUsage&) const = default;
};

/// What the processes of an attempt used, all of them together.
struct Usage {
  std::optional<std::chrono::microseconds> user, system;  ///< CPU time.
  /// Bytes: the peak of all processes together. Of a control group without the files that the
  /// kernel had cached for it; of a tree of processes by samples.
  std::optional<std::uint64_t> peak_memory;
  std::optional<std::uint64_t> memory_limit;   ///< Bytes that they were allowed to use.
  std::optional<std::uint64_t> read, written;  ///< Bytes from and to disks, not caches.
  std::optional<std::uint64_t>
      memory_kills;  ///< Processes killed by the kernel for lack of memory.
  std::vector<GpuUsage> gpus;
  /// Returns null for a GPU that was not measured.
  const GpuUsage* of_gpu(std::string_view uuid) const {
    const auto found = std::ranges::find(gpus, uuid, &GpuUsage::uuid);
    return found == gpus.end() ? nullptr : &*found;
  }
  bool operator==(const Usage&) const = default;
};

/// The parts of an attempt's wall time; together they are the time from when the step could have
/// run until its outputs were stored.
struct Phases {
  std::optional<std::chrono::milliseconds> waiting;    ///< For a job slot, GPUs or a retry.
  std::optional<std::chrono::milliseconds> preparing;  ///< Code, container or pod.
  /// Inputs to where the step runs, and outputs from there.
  std::optional<std::chrono::milliseconds> transfers;
  std::optional<std::chrono::milliseconds> running;  ///< The step's command.
  std::optional<std::chrono::milliseconds> storing;  ///< Removal, and the outputs' digests.
  bool operator==(const Phases&) const = default;
};

}  // namespace pipeline::core

/// @file
/// The resource usage of an attempt, and the phases of its time. Only measured values are set.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::core {

/// Usage of one of the attempt's GPUs, from samples that were taken while it ran.
struct GpuUsage {
  std::string uuid;
  /// Share of the time in which the GPU computed, 0 to 1; unset for a MIG slice.
  std::optional<double> mean_load, peak_load;
  std::uint64_t mean_memory = 0, peak_memory = 0,
                memory = 0;  ///< Bytes; `memory` is the GPU's size.
  bool operator==(const GpuUsage&) const = default;
};

/// Usage of all processes of an attempt together.
struct Usage {
  std::optional<std::chrono::microseconds> user, system;  ///< CPU time.
  /// Bytes: the peak of all processes together, from a control group (without files that the kernel
  /// cached for it) or from samples of a tree of processes.
  std::optional<std::uint64_t> peak_memory;
  std::optional<std::uint64_t> memory_limit;   ///< Bytes that each node's processes may use.
  std::optional<std::uint64_t> read, written;  ///< Bytes from and to disks, not caches.
  std::optional<std::uint64_t> memory_kills;   ///< Processes that the kernel's OOM killer ended.
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
  /// Transfer of inputs to the step's machine, and of outputs from there.
  std::optional<std::chrono::milliseconds> transfers;
  std::optional<std::chrono::milliseconds> running;  ///< The step's command.
  std::optional<std::chrono::milliseconds> storing;  ///< Removal, and the outputs' digests.
  /// The parts of `waiting`, by the thing that was awaited: `store` (the remote store), `image` (or
  /// a virtual environment), `answer` (of a user to the step's question), `step` (another step with
  /// the same key), `limit`, `slot`, `gpus`, `retry`.
  std::map<std::string, std::chrono::milliseconds> waits;
  bool operator==(const Phases&) const = default;
};

}  // namespace pipeline::core

/// @file
/// Resource usage of a step in its pod, from the kernel's accounts of the agent's children and of
/// the container's control group (versions 1 and 2).
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <ctime>

#include "agent/gpu_watch.hpp"

namespace pipeline::agent {

/// The largest size of the usage as JSON: 384 bytes for each GPU, and 512 for the rest.
constexpr std::size_t max_usage = gpu::SmiSamples::max_gpus * 384 + 512;

class UsageMeter {
 public:
  /// Begins the measurement; call it when the step has been started.
  /// @param has_own_group the control group at /sys/fs/cgroup belongs to this container alone
  explicit UsageMeter(bool has_own_group);
  /// Samples the memory in use if a sample is due. Returns the milliseconds until the next sample;
  /// -1 if there is never one, because the control group is not the container's own.
  int sample();
  /// Adds the usage of an ended child, including the child's own ended children.
  void add(const rusage& used);
  /// Writes the usage as JSON of at most `max_usage` bytes. Returns the size.
  std::size_t write(char* text, const GpuWatch& gpus);

 private:
  void sample_memory(bool at_end);

  const bool has_own_group_;
  const bool is_unified_;  ///< The control groups are of version 2.
  timespec start_{}, next_{};
  unsigned long long peak_ = 0;                ///< Bytes: the largest memory of all processes.
  unsigned long long largest_ = 0;             ///< Bytes: the memory of the largest process.
  unsigned long long user_ = 0, system_ = 0;   ///< Microseconds.
  unsigned long long read_ = 0, written_ = 0;  ///< Bytes.
};

}  // namespace pipeline::agent

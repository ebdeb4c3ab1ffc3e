/// @file
/// What a step has used in its pod: from the kernel's accounts of the agent's children, and of the
/// container's control group (versions 1 and 2).
#pragma once

#include <cstddef>
#include <ctime>

namespace pipeline::kubernetes {

constexpr std::size_t longest_usage = 512;

class UsageMeter {
 public:
  /// The step has just been started.
  /// @param has_own_group the control group at /sys/fs/cgroup is that of this container alone
  explicit UsageMeter(bool has_own_group);
  /// Notes the memory in use if it is time to. Returns the milliseconds until the next time; -1:
  /// never.
  int sample();
  /// Writes what all ended children have used, as JSON of at most `longest_usage` bytes. Returns
  /// its size.
  std::size_t write(char* text);

 private:
  void sample_memory(bool at_end);

  const bool has_own_group_, is_unified_;
  timespec start_{}, next_{};
  unsigned long long peak_ = 0;
};

}  // namespace pipeline::kubernetes

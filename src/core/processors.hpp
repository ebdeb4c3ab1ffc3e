/// @file
/// How many processors this process may use.
#pragma once

#include <filesystem>

namespace pipeline::core {

/// Returns the number of processors that this process may use at a time, at least 1: those of its
/// affinity, no more than the quotas of its control group and of the groups above it (rounded up),
/// and in a job of Slurm no more than the job has on this node (SLURM_CPUS_ON_NODE).
/// @param proc, mounts replaced in tests
unsigned usable_processors(const std::filesystem::path& proc = "/proc/self",
                           const std::filesystem::path& mounts = "/sys/fs/cgroup");

}  // namespace pipeline::core

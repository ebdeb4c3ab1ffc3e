/// @file
/// The computing, reading and writing of processes of this machine, as the kernel counts it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <vector>

#include "core/activity.hpp"

namespace pipeline::orchestrators::usage {

/// Returns the sum over the processes and their children that have ended. A process whose files in
/// `proc` this user may not read counts as nothing.
core::Activity activity_of_processes(const std::vector<pid_t>& pids,
                                     const std::filesystem::path& proc = "/proc");

}  // namespace pipeline::orchestrators::usage

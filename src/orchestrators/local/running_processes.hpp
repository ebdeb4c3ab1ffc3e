/// @file
/// Finds the processes of a running step in /proc, and what a shell beside these processes needs.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "core/file.hpp"
#include "orchestrators/attempts.hpp"

namespace pipeline::orchestrators::local {

/// Returns the processes of an attempt, or of one of its ranks, by the variables that they were
/// started with.
/// @param wanted its run, step, number and rank are compared, its node is not
std::vector<pid_t> processes_of(const RunningProcess& wanted,
                                const std::filesystem::path& proc = "/proc");

/// Returns the process that the attempt, or its rank, began with: of those in processes_of() that
/// descend from no other, the one with the lowest number. Nothing if none runs.
std::optional<pid_t> first_process_of(const RunningProcess& wanted,
                                      const std::filesystem::path& proc = "/proc");

/// Returns the open `cgroup.procs` files of the control groups that pipe has made to limit the
/// process. Another process joins the groups by writing `0` to each.
std::vector<core::Descriptor> limit_groups_of(
    pid_t process, const std::filesystem::path& proc = "/proc",
    const std::filesystem::path& mounts = "/sys/fs/cgroup");

/// Returns the variables that the process was started with.
StringMap variables_of_process(pid_t process, const std::filesystem::path& proc = "/proc");

}  // namespace pipeline::orchestrators::local

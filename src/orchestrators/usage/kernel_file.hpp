/// @file
/// Reads small generated files of /proc and /sys.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::orchestrators::usage {

/// Returns the text of a file that the kernel generates on each read; empty if it is missing.
std::string kernel_text(const std::filesystem::path& file);

/// Returns the variables that a process was started with, a zero byte after each; empty if this
/// user may not read them. Reads at most as much as the kernel passes to a new program, because
/// a process can declare any part of its memory to be its variables (prctl(2), PR_SET_MM).
/// @param process the process's folder, /proc/PID
std::string process_variables(const std::filesystem::path& process);

/// A line of /proc/PID/cgroup: `ID:CONTROLLERS:PATH` (cgroups(7)).
struct GroupMembership {
  std::string controllers;     ///< Separated by commas; empty in the hierarchy of version 2.
  std::filesystem::path path;  ///< Below the hierarchy's mount, without the first slash.

  bool is_unified() const { return controllers.empty(); }
  /// Returns true for the hierarchy of this controller in version 1.
  bool has(std::string_view controller) const;
};

/// Reads a file such as /proc/self/cgroup.
std::vector<GroupMembership> group_memberships(const std::filesystem::path& file);

}  // namespace pipeline::orchestrators::usage

/// @file
/// Resource usage of a control group, from the kernel's own accounts (versions 1 and 2).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.hpp"
#include "core/usage.hpp"

namespace pipeline::orchestrators::usage {

/// The folders of one group. With version 2, all paths name one folder; with version 1, each
/// controller has its own folder, and the path is empty if the controller is missing.
struct GroupFolders {
  bool unified = false;                       ///< Version 2.
  std::filesystem::path memory, cpu, blocks;  ///< `blocks`: reads and writes of disks.
  std::filesystem::path all_blocks;  ///< With version 1, the folder of the controller's root group.
  bool exists() const { return !memory.empty() || !cpu.empty(); }
};

/// Finds the group of a container of this machine in the folders where engines make groups.
/// @param mounts replaced in tests
GroupFolders find_container_group(const std::string& container,
                                  const std::filesystem::path& mounts = "/sys/fs/cgroup");

/// Returns the group's processes, by their numbers on this machine.
std::vector<pid_t> processes_in(const GroupFolders& group);

/// Returns the group's first process, by its number on this machine: the process that has number 1
/// in its namespace, or else the first that the kernel lists; 0 if the group is empty.
pid_t first_process(const GroupFolders& group);

class GroupUsage {
 public:
  /// Opens the group's files of CPU time and keeps them open, so that sample_cpu() takes only
  /// microseconds.
  explicit GroupUsage(GroupFolders folders);
  const GroupFolders& folders() const { return folders_; }
  /// Reads the CPU time until now.
  void sample_cpu();
  /// Reads the usage until now, and the memory that cannot be reclaimed: the kernel records only
  /// the peak of all memory, which includes files that it caches for the group.
  void sample();
  /// Returns the usage until now. A value that cannot be read, because the group is gone, is that
  /// of the last sample; without a sample, it is unset.
  core::Usage read();

 private:
  /// Reads the usage until now into `last_`. @param memory_file has the memory in use, or its peak
  void update(const char* memory_file);
  void raise_peak(const char* memory_file);
  GroupFolders folders_;
  core::Descriptor cpu_, cpu_user_, cpu_system_;  ///< The latter two exist only with version 1.
  core::Usage last_;                              ///< The peak of memory is set by read().
  std::uint64_t sampled_peak_ = 0;
};

}  // namespace pipeline::orchestrators::usage

/// @file
/// Limits the memory and CPU time of a process tree by control groups, if this user may create
/// control groups.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/settings.hpp>

#include "core/file.hpp"
#include "core/usage.hpp"

namespace pipeline::orchestrators::local {

/// The folders in which control groups can be created. Version 2 has a single tree, of which
/// systemd delegates a part to a user's sessions and services; version 1 has a tree for each
/// controller.
struct ControlGroups {
  bool unified = false;               ///< The machine has version 2.
  std::filesystem::path memory, cpu;  ///< Empty: no group can limit this resource.
};

/// Searches for these folders from this process's own group upwards. Checks permissions only, and
/// creates nothing.
/// @param proc,mounts files of the kernel; tests pass others
ControlGroups find_control_groups(const std::filesystem::path& proc = "/proc/self/cgroup",
                                  const std::filesystem::path& mounts = "/sys/fs/cgroup");

/// The control group of an attempt, or of one node of an attempt with `nodes`. The destructor kills
/// the processes in the group and removes the group.
class LimitGroup {
 public:
  /// Creates the group. Throws EnvironmentError, and leaves nothing behind, if the system refuses.
  LimitGroup(const ControlGroups& where, const std::string& name, std::optional<Bytes> memory,
             std::optional<double> cpus);
  ~LimitGroup();
  LimitGroup(const LimitGroup&) = delete;
  LimitGroup& operator=(const LimitGroup&) = delete;

  /// Returns the descriptors of the group's member files, cgroup.procs. A process joins the group
  /// by writing `0` to each. This object owns the descriptors and closes them in its destructor.
  std::vector<int> member_files() const;
  /// Returns true if the kernel counts the processes of this group that it kills for lack of
  /// memory.
  bool counts_kills() const;
  /// Sets the number of processes that were killed for lack of memory. Also sets the peak memory of
  /// all processes together if the group limits memory and the kernel records the peak.
  void measure(core::Usage& usage) const;

 private:
  void remove();
  std::optional<std::uint64_t> kills() const;
  bool unified_;
  std::filesystem::path memory_;
  std::vector<std::filesystem::path> folders_;
  std::vector<core::Descriptor> member_files_;
};

/// The groups that are in use, by name. The processes of one node of an attempt share its
/// group.
class LimitGroups {
 public:
  /// Returns the group of this name, and creates it unless another process of the node has it. The
  /// group is removed when the last of the returned pointers is destroyed.
  std::shared_ptr<LimitGroup> take(const ControlGroups& where, const std::string& name,
                                   const ResourceSettings& resources);

 private:
  std::map<std::string, std::weak_ptr<LimitGroup>> groups_;
};

}  // namespace pipeline::orchestrators::local

/// @file
/// Memory and CPU limits of a process tree, by control groups where this user may create them.
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

/// The places where groups can be created: version 2's single tree (delegated by systemd to a
/// user's sessions and services), or version 1's tree for each controller.
struct ControlGroups {
  bool unified = false;
  std::filesystem::path memory, cpu;  ///< Folders in which a group may be created; empty: none.
};

/// Searches from this process's own group upwards; only checks permissions.
/// @param proc,mounts replaced in tests
ControlGroups find_control_groups(const std::filesystem::path& proc = "/proc/self/cgroup",
                                  const std::filesystem::path& mounts = "/sys/fs/cgroup");

/// The control group of one attempt. At destruction its members are killed and it is removed.
class LimitGroup {
 public:
  /// Throws EnvironmentError if the system refuses; nothing is left behind then.
  LimitGroup(const ControlGroups& where, const std::string& name, std::optional<Bytes> memory,
             std::optional<double> cpus);
  ~LimitGroup();
  LimitGroup(const LimitGroup&) = delete;
  LimitGroup& operator=(const LimitGroup&) = delete;

  /// Returns open files; a process joins by writing `0` to each.
  std::vector<int> members() const;
  /// Returns true if the kernel counts for this group which processes it kills for lack of memory.
  bool counts_kills() const;
  /// Sets the number of processes that were killed for lack of memory, and the peak of the group's
  /// memory, which counts all processes together, if there is a limit of memory and the kernel
  /// records it.
  void measure(core::Usage& usage) const;

 private:
  void remove();
  std::optional<std::uint64_t> kills() const;
  bool unified_;
  std::filesystem::path memory_;
  std::vector<std::filesystem::path> folders_;
  std::vector<core::Descriptor> members_;
};

/// The groups that are in use, by name: the processes of a node share one.
class LimitGroups {
 public:
  /// Returns the group of this name, or creates it. It ends with the last process that has it.
  std::shared_ptr<LimitGroup> take(const ControlGroups& where, const std::string& name,
                                   const ResourceSettings& resources);

 private:
  std::map<std::string, std::weak_ptr<LimitGroup>> groups_;
};

}  // namespace pipeline::orchestrators::local

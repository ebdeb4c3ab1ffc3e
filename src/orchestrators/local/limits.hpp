/// @file
/// Memory and CPU limits for a process and all that it starts, by control groups where this user
/// may make them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/settings.hpp>

#include "core/file.hpp"

namespace pipeline::orchestrators {

/// Where groups can be made: version 2's one tree (delegated by systemd to a user's sessions and
/// services), or version 1's tree for each kind.
struct ControlGroups {
  bool unified = false;
  std::filesystem::path memory, cpu;  ///< Folders in which a group may be made; empty: none.
};

/// Looks from the caller's own group upwards. No side effect: it tries nothing out, but asks for
/// the permission.
/// @param proc,mounts replaced in tests
ControlGroups find_control_groups(const std::filesystem::path& proc = "/proc/self/cgroup",
                                  const std::filesystem::path& mounts = "/sys/fs/cgroup");

/// One group, for one attempt. Its members are killed and it is removed at destruction.
class LimitGroup {
 public:
  /// Throws EnvironmentError when the system refuses; then nothing is left.
  LimitGroup(const ControlGroups& where, const std::string& name, std::optional<Bytes> memory,
             std::optional<double> cpus);
  ~LimitGroup();
  LimitGroup(const LimitGroup&) = delete;
  LimitGroup& operator=(const LimitGroup&) = delete;

  /// Open files; a process joins by writing `0` to each.
  std::vector<int> members() const;
  /// True if a process in it was killed because it had used up the memory.
  bool out_of_memory() const;

 private:
  void remove();
  bool unified_;
  std::filesystem::path memory_;
  std::vector<std::filesystem::path> folders_;
  std::vector<core::Descriptor> members_;
};

}  // namespace pipeline::orchestrators

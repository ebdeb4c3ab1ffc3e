/// @file
/// Detects whether the kernel has recently killed a process for lack of memory, from the kernel's
/// own counters, which miss no kill.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace pipeline::orchestrators::usage {

/// The kernel's kills since the creation of this object. An attempt creates the object before its
/// process starts, and calls take() when SIGKILL has ended the process without a known cause. The
/// kernel counts the kills of many processes, so each kill is attributed to one attempt only. An
/// attempt that knows of its kill from elsewhere calls take(), too, so that no other attempt takes
/// the kill. A loaded Docker Engine misses kills, because its shim drops the event once the control
/// group is gone; `State.OOMKilled` then stays false.
class MemoryKills {
 public:
  /// The last of the kernel's counts that an attempt of this process has taken. Tests pass their
  /// own.
  using Account = std::atomic<std::uint64_t>;
  /// Counts all of the machine's kills, those of other users and of containers included.
  static constexpr const char* of_machine = "/proc/vmstat";

  /// @param counters a file with lines `NAME NUMBER`: the machine's, or that of this process's
  /// control group. If it cannot be read, or has no `oom_kill` (kernels before 4.13), no kill is
  /// detected.
  explicit MemoryKills(std::filesystem::path counters = of_machine);
  MemoryKills(std::filesystem::path counters, Account& taken);
  /// Takes one kill that happened after the construction; returns false if there is none left.
  bool take() const;

 private:
  static Account taken_of_machine, taken_of_group;

  std::filesystem::path counters_;
  Account& taken_;
  std::optional<std::uint64_t> before_;
};

/// Returns the number after `name` in a kernel file with lines `NAME NUMBER`; nothing if the file
/// or the line is missing.
std::optional<std::uint64_t> read_counter(const std::filesystem::path& file, std::string_view name);

/// Returns the file that counts the kills in this process's own control group, those in groups
/// below it excluded; MemoryKills::of_machine where there is none.
/// @param proc,mounts replaced in tests
std::filesystem::path own_kill_counter(const std::filesystem::path& proc = "/proc/self/cgroup",
                                       const std::filesystem::path& mounts = "/sys/fs/cgroup");

}  // namespace pipeline::orchestrators::usage

/// @file
/// Detects whether this machine's kernel has recently killed a process for lack of memory, from the
/// kernel's own counter, which misses no kill.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace pipeline::orchestrators {

/// Created before an attempt's process starts, and queried when SIGKILL has ended it without a
/// known cause. The count is the whole machine's, so each kill is attributed to one attempt only;
/// an attempt with better evidence of a kill takes it, too. A Docker Engine under load misses the
/// event, because its shim drops it once the control group is gone; `State.OOMKilled` then stays
/// false.
class MemoryKills {
 public:
  /// The part of the kernel's count that attempts of this process have taken. Tests use their own.
  using Account = std::atomic<std::uint64_t>;

  /// @param counters a file with lines `NAME NUMBER`; replaced in tests. If it cannot be read, or
  /// has no `oom_kill` (kernels before 4.13), no kill is detected.
  explicit MemoryKills(std::filesystem::path counters = "/proc/vmstat",
                       Account& taken = taken_by_this_process);
  /// Takes one kill that happened after the construction; returns false if there is none left.
  bool take() const;

 private:
  static Account taken_by_this_process;

  std::filesystem::path counters_;
  Account& taken_;
  std::optional<std::uint64_t> before_;
};

/// Returns the number after `name` in a kernel file with lines `NAME NUMBER`.
std::optional<std::uint64_t> read_counter(const std::filesystem::path& file, std::string_view name);

}  // namespace pipeline::orchestrators

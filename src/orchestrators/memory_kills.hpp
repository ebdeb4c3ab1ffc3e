/// @file
/// Whether this machine's kernel has killed for memory lately: it counts that, whoever else was
/// told or missed it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace pipeline::orchestrators {

/// Made before an attempt's process starts, and asked when SIGKILL has ended it and nobody says
/// why. The count is the whole machine's, so each kill is taken by one attempt only; whoever knows
/// of one by better evidence takes it, too. A Docker Engine misses the news under load, as its shim
/// drops it once the control group is gone; then `State.OOMKilled` stays false for good.
class MemoryKills {
 public:
  /// How far the kernel's count has been taken by attempts of this process. Its own in tests.
  using Account = std::atomic<std::uint64_t>;

  /// @param counters lines of `NAME NUMBER`; replaced in tests. Where it cannot be read, or has no
  /// `oom_kill` (kernels before 4.13), nothing is ever seen.
  explicit MemoryKills(std::filesystem::path counters = "/proc/vmstat",
                       Account& taken = taken_by_this_process);
  /// Takes one that came after this was made; false if there is none left.
  bool take() const;

 private:
  static Account taken_by_this_process;

  std::filesystem::path counters_;
  Account& taken_;
  std::optional<std::uint64_t> before_;
};

/// The number after `name` in a file of `NAME NUMBER` lines, as the kernel writes them.
std::optional<std::uint64_t> read_counter(const std::filesystem::path& file, std::string_view name);

}  // namespace pipeline::orchestrators

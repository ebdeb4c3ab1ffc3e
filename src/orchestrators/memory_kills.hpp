/// @file
/// Whether this machine's kernel has killed for memory lately: it counts that, whoever else was told or missed it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace pipeline {

/// Made before a process starts and asked when SIGKILL has ended it. The count is the whole machine's: evidence where nothing else is known of the kill.
/// A Docker Engine misses the news under load, as its shim drops it once the control group is gone; then `State.OOMKilled` stays false for good.
class MemoryKills {
 public:
  /// @param counters lines of `NAME NUMBER`; replaced in tests. Where it cannot be read, or has no `oom_kill` (kernels before 4.13), nothing is ever seen.
  explicit MemoryKills(std::filesystem::path counters = "/proc/vmstat");
  /// True if there have been any since this was made.
  bool any() const;

 private:
  std::filesystem::path counters_;
  std::optional<std::uint64_t> before_;
};

/// The number after `name` in a file of `NAME NUMBER` lines, as the kernel writes them.
std::optional<std::uint64_t> read_counter(const std::filesystem::path& file, std::string_view name);

}  // namespace pipeline

/// @file
/// The memory that a process and its descendants use together, by samples of /proc.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace pipeline::orchestrators {

/// Returns a process and its descendants, itself first, by way of each thread's list of children:
/// other processes of the machine cost nothing. Falls back to process_tree() on a kernel without
/// these lists.
std::vector<pid_t> descendants_of(pid_t root, const std::filesystem::path& proc = "/proc");

/// Returns the bytes that a process has in memory (RSS); 0 if it has ended.
std::uint64_t resident_memory_of(pid_t process, const std::filesystem::path& proc = "/proc");
/// Returns the same, of each page that it shares with others its share (PSS): the sum over a tree
/// counts what forked workers have in common once. The kernel looks at each page for it. RSS where
/// the kernel does not show the shares to this user.
std::uint64_t shared_out_memory_of(pid_t process, const std::filesystem::path& proc = "/proc");

/// The peak of the memory that a tree of processes used together. The shares are read in a small
/// part of the time; in between, what the same processes have in common is taken to be as before.
class TreeMemory {
 public:
  explicit TreeMemory(pid_t root, std::filesystem::path proc = "/proc")
      : root_(root), proc_(std::move(proc)) {}
  /// A tree of one process is not read: the kernel records that peak itself.
  /// Returns the CPU time that it took, without that for the shares.
  std::chrono::nanoseconds sample();
  /// Largest sum of a sample in bytes; 0 if there was never more than one process.
  std::uint64_t peak() const { return peak_; }

 private:
  pid_t root_;
  std::filesystem::path proc_;
  void read_shares(const std::vector<pid_t>& tree, std::uint64_t resident);
  std::vector<pid_t> known_;     ///< The processes whose shares were read last.
  std::uint64_t in_common_ = 0;  ///< Bytes that these have in memory more than once.
  std::chrono::steady_clock::time_point next_shares_{};
  std::uint64_t peak_ = 0;
};

}  // namespace pipeline::orchestrators

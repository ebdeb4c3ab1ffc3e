/// @file
/// The memory that a process and its descendants use together, by samples of /proc.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace pipeline::orchestrators::usage {

/// Returns a process and its descendants, itself first, by way of each thread's list of children:
/// other processes of the machine cost nothing. Falls back to process_tree() on a kernel without
/// these lists.
std::vector<pid_t> descendants_of(pid_t root, const std::filesystem::path& proc = "/proc");

/// Bytes that a process has in memory.
struct ProcessMemory {
  std::uint64_t data = 0;            ///< Of no file: heap, stacks, changed pages of files.
  std::uint64_t data_in_common = 0;  ///< What it has of data beyond its shares.
  std::uint64_t shared = 0;  ///< Shared memory; a part of `mapped` where the kernel has one sum.
  std::uint64_t mapped = 0;  ///< Files, such as programs and libraries.
  bool operator==(const ProcessMemory&) const = default;
};

/// Returns what a process has in memory (RSS), with shared memory among the files; zeros if it has
/// ended. The kernel has these sums.
ProcessMemory resident_memory_of(pid_t process, const std::filesystem::path& proc = "/proc");
/// Returns the same, but of data and shared memory each page's share (PSS): the sum over a tree
/// counts what forked workers have in common once. The kernel looks at each page for it. RSS where
/// the kernel does not show the shares to this user.
ProcessMemory shared_out_memory_of(pid_t process, const std::filesystem::path& proc = "/proc");

/// The peak of the memory that a tree of processes used together. Of files the process with most of
/// them counts, because the shares of their pages depend on the machine's other processes. The
/// shares are read in a small part of the time, and preferably when the tree is that of the sample
/// before; in between only the data of the same processes is followed, and what they have in common
/// of it is taken to be as before.
class TreeMemory {
 public:
  /// @param between_shares the least time between two looks at shares
  explicit TreeMemory(pid_t root, std::filesystem::path proc = "/proc",
                      std::chrono::nanoseconds between_shares = {})
      : root_(root), proc_(std::move(proc)), between_shares_(between_shares) {}
  /// A tree of one process is not read: the kernel records that peak itself.
  /// Returns the CPU time that it took, without that for the shares.
  std::chrono::nanoseconds sample();
  /// Largest sum of a sample in bytes; 0 if there was never more than one process.
  std::uint64_t peak() const { return peak_; }

 private:
  pid_t root_;
  std::filesystem::path proc_;
  std::chrono::nanoseconds between_shares_;
  void read_shares(std::vector<pid_t> tree);
  std::vector<pid_t> last_;        ///< The tree of the last sample.
  std::vector<pid_t> known_;       ///< The processes whose shares were read last, in order.
  std::uint64_t in_common_ = 0;    ///< Bytes of data that these have in memory more than once.
  std::uint64_t beside_data_ = 0;  ///< Bytes of their shared memory and files.
  std::chrono::steady_clock::time_point next_shares_ = std::chrono::steady_clock::now();
  int quiet_looks_ = 0;  ///< Looks at shares in a row that have found no more.
  std::uint64_t peak_ = 0;
};

}  // namespace pipeline::orchestrators::usage

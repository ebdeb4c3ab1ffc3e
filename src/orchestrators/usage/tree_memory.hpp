/// @file
/// The memory that a process and its descendants use together, by samples of /proc.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace pipeline::orchestrators::usage {

/// Returns a process and its descendants; the process itself is first. Reads each thread's list of
/// children, so that other processes of the machine cost nothing. Falls back to process_tree() on
/// a kernel without these lists.
std::vector<pid_t> descendants_of(pid_t root, const std::filesystem::path& proc = "/proc");

/// Bytes that a process has in memory.
struct ProcessMemory {
  std::uint64_t data = 0;            ///< Heap, stacks, changed pages of files.
  std::uint64_t data_in_common = 0;  ///< Data that is counted in the sums of other processes.
  std::uint64_t shared = 0;  ///< Shared memory; counted in `mapped` where the kernel has one sum.
  std::uint64_t mapped = 0;  ///< Files, such as programs and libraries.
  bool operator==(const ProcessMemory&) const = default;
};

/// Returns the memory of a process from the kernel's own sums (RSS), in which `mapped` includes
/// shared memory; zeros if the process has ended.
ProcessMemory resident_memory_of(pid_t process, const std::filesystem::path& proc = "/proc");
/// Returns the memory of a process, in which a page of data or shared memory that N processes use
/// counts as an Nth (PSS). So the sum over a tree counts the pages of forked workers once. Slow,
/// because the kernel visits each page. Returns resident_memory_of() where the kernel does not show
/// the shares to this user.
ProcessMemory proportional_memory_of(pid_t process, const std::filesystem::path& proc = "/proc");

/// The peak of the memory that a tree of processes used together. Mapped files count only for the
/// process that has mapped the most, because the shares of their pages depend on the machine's
/// other processes. Shares are read rarely, because that is slow, and preferably while the tree
/// does not change. Between two readings, samples follow the data of the processes whose shares
/// were read; the memory that they share is assumed to be unchanged.
class TreeMemory {
 public:
  /// @param between_shares the minimum time between two readings of shares
  explicit TreeMemory(pid_t root, std::filesystem::path proc = "/proc",
                      std::chrono::nanoseconds between_shares = {})
      : root_(root), proc_(std::move(proc)), between_shares_(between_shares) {}
  /// Samples the tree, unless it is a single process, whose peak the kernel records. Returns the
  /// CPU time that the sample took, without that of reading shares.
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
  std::uint64_t in_common_ = 0;    ///< Bytes of data that these processes share.
  std::uint64_t beside_data_ = 0;  ///< Bytes of their shared memory and files.
  std::chrono::steady_clock::time_point next_shares_ = std::chrono::steady_clock::now();
  int quiet_looks_ = 0;  ///< Number of last readings of shares that did not raise the peak.
  std::uint64_t peak_ = 0;
};

}  // namespace pipeline::orchestrators::usage

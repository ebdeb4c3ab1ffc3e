/// @file
/// Kernel locks in the state folder. The kernel releases them when their process ends, in whatever
/// container it ran, so they tell more than process identifiers do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "core/file.hpp"

namespace pipeline::store {

/// True if all processes that see this folder run on this kernel, so that its locks and its shared
/// memory reach them: a file system on a disk or in memory. False for NFS, CIFS, FUSE, 9p, and what
/// is not known.
bool is_local_file_system(const std::filesystem::path& folder);
/// The same, of an f_type of statfs(2).
bool is_local_file_system(long type);

/// A lock on one byte of the file `locks`, an open file description lock of fcntl(2); two in one
/// process exclude each other, too. Released at destruction.
class StateLock {
 public:
  enum class Kind { shared, exclusive };
  /// The byte that each run holds shared, and what removes artifacts exclusively.
  static constexpr std::int64_t artifacts = 0;
  /// The byte that the driver of this run holds.
  static std::int64_t driver_of(const std::string& run);

  /// Nothing if it is held otherwise. Where the file system has no locks, or may not be written,
  /// the result locks nothing.
  static std::optional<StateLock> try_take(const std::filesystem::path& state, std::int64_t byte,
                                           Kind kind);
  /// Waits for it.
  static StateLock take(const std::filesystem::path& state, std::int64_t byte, Kind kind);
  /// Whether any process holds it, as far as this kernel and the server of a network file system
  /// can tell.
  static bool is_held(const std::filesystem::path& state, std::int64_t byte);

  /// False where the file system has no locks.
  bool locks() const { return static_cast<bool>(file_); }

 private:
  explicit StateLock(core::Descriptor file) : file_(std::move(file)) {}
  core::Descriptor file_;
};

/// A sign of life for file systems whose locks do not reach all machines: a file, written anew
/// every few seconds; removed at destruction.
class Heartbeat {
 public:
  static constexpr std::chrono::seconds interval{10};
  /// Within this time of its last beat a driver counts as alive.
  static constexpr std::chrono::seconds fresh{60};

  explicit Heartbeat(std::filesystem::path file, std::chrono::milliseconds every = interval);
  ~Heartbeat();
  /// By the clock that stamps files in that folder, whatever the machines' own say.
  static bool is_fresh(const std::filesystem::path& file);

 private:
  std::filesystem::path file_;
  std::jthread thread_;
};

}  // namespace pipeline::store

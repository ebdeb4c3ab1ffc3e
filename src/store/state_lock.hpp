/// @file
/// Kernel locks in the state folder. The kernel releases them when their process ends, in any
/// container, so they are more reliable than process identifiers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "core/file.hpp"

namespace pipeline::store {

/// Returns true if all processes that see this folder run on this kernel, so that its locks and
/// shared memory work between them: a file system on a disk or in memory. False for NFS, CIFS,
/// FUSE, 9p, and unknown file systems.
bool is_local_file_system(const std::filesystem::path& folder);
/// Returns true if file systems with this f_type of statfs(2) are local.
bool is_local_file_system(long type);

/// A lock on one byte of the file `locks`: an open file description lock of fcntl(2), which also
/// excludes other locks of the same process. Released at destruction.
class StateLock {
 public:
  enum class Kind { shared, exclusive };
  /// The byte that each run locks shared, and a process that removes artifacts locks exclusively.
  static constexpr std::int64_t artifacts = 0;
  /// The byte that the driver of this run locks.
  static std::int64_t driver_of(const std::string& run);

  /// Returns nothing if another lock conflicts. If the file system has no locks or is read-only,
  /// returns an object that locks nothing.
  static std::optional<StateLock> try_take(const std::filesystem::path& state, std::int64_t byte,
                                           Kind kind);
  /// Takes the lock as try_take() does, but waits until it is free.
  static StateLock take(const std::filesystem::path& state, std::int64_t byte, Kind kind);
  /// Prevents the removal of artifacts; waits for a process that is removing some.
  /// @param on_wait called before it waits
  static StateLock keep_artifacts(const std::filesystem::path& state,
                                  const std::function<void()>& on_wait = {});
  /// Returns the lock for removing artifacts; nothing while any process keeps them.
  static std::optional<StateLock> hold_artifacts(const std::filesystem::path& state);
  /// Returns true if any process holds the lock, as far as this kernel and the server of a network
  /// file system know.
  static bool is_held(const std::filesystem::path& state, std::int64_t byte);
  /// Returns true if this user, who may not write into the folder, cannot look at its locks.
  static bool is_hidden(const std::filesystem::path& state);

  /// False if the file system has no locks.
  bool locks() const { return static_cast<bool>(file_); }

 private:
  explicit StateLock(core::Descriptor file) : file_(std::move(file)) {}
  core::Descriptor file_;
};

/// The keys of steps whose results a run makes: each is locked for this object alone, as by an
/// exclusive StateLock. A single descriptor locks all keys.
class KeyLocks {
 public:
  explicit KeyLocks(std::filesystem::path state) : state_(std::move(state)) {}
  /// Returns false if a step of this run or of another one has the key. If the file system has no
  /// locks or is read-only, other runs do not count.
  bool try_take(const std::string& key);
  void release(const std::string& key);

 private:
  const std::filesystem::path state_;
  core::Descriptor file_;
  std::set<std::string> taken_;
};

/// The heartbeat of a driver, for file systems whose locks do not reach all machines: a file that
/// is written again every few seconds and removed at destruction.
class Heartbeat {
 public:
  static constexpr std::chrono::seconds interval{10};
  /// A driver whose last beat is not older than this counts as alive.
  static constexpr std::chrono::seconds fresh{60};

  explicit Heartbeat(std::filesystem::path file, std::chrono::milliseconds every = interval);
  ~Heartbeat();
  /// Returns true if the last beat is not older than `fresh`, by the clock of the file system: all
  /// machines share it.
  static bool is_fresh(const std::filesystem::path& file);

 private:
  std::filesystem::path file_;
  std::jthread thread_;
};

}  // namespace pipeline::store

/// @file
/// The machine's GPU reservations, shared by all drivers of all users: files with kernel locks
/// (flock), so that no crash leaves a GPU reserved.
///
///   mutex     locked while a driver reads the state and decides
///   queue     the waiting requests, as JSON; entries of dead drivers are ignored
///   driver-N  locked while the driver that wrote its token into it is alive
///   <UUID>    locked while the GPU is held by a driver, and once more (fcntl) while it is held by
///             the processes that inherit that descriptor; contains the holder, as JSON
///   limit-NAME-N  locked while a driver holds unit N of a named limit
///
/// A file is created once and never removed, because in a sticky folder only its owner could remove
/// it. Closing a file that was open for writing wakes the processes that watch the folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipeline/events.hpp>

#include "core/file.hpp"
#include "gpu/queue.hpp"

namespace pipeline::gpu {

/// The step that holds a GPU, or that has made a waiting request, for messages.
struct HolderInfo {
  std::int64_t pid = 0;  ///< Process id of the driver.
  std::string user, run, step;
  WallTime since{};
  bool gone = false;  ///< The driver has died, but a process that it started still holds the GPU.
};

/// `step 'train' of run 20261121-8f3a (pid 4242, user ana)`
std::string to_string(const HolderInfo& holder);

/// A waiting request of any driver on the machine.
struct LockEntry {
  std::string driver;  ///< The token that the driver got from LockFolder::sign_in().
  Waiting waiting;
  HolderInfo holder;
};
/// Orders entries by number; equal numbers occur only if the queue was lost in between.
std::pair<std::uint64_t, std::string_view> order_of(const LockEntry& entry);

class LockFolder {
 public:
  /// Returns $PIPE_GPU_LOCKS, else /run/lock/pipe-gpus if every user may write in /run/lock, else
  /// /tmp/pipe-gpus: the same folder for every user.
  static std::filesystem::path default_path();

  /// Creates the folder if it is missing. Throws EnvironmentError if it cannot be used, or if it is
  /// not writable by everyone with the sticky bit set.
  explicit LockFolder(std::filesystem::path folder = default_path());

  /// Returns the folder at the default path if a driver has already created it.
  static std::optional<LockFolder> existing();

  /// Access to the queue and to the holders, while this driver has the mutex.
  class Session {
   public:
    ~Session();
    Session(Session&& other) noexcept : folder_(std::exchange(other.folder_, nullptr)) {}
    Session& operator=(Session&&) = delete;

    /// Returns the entries of living drivers, ordered by their numbers.
    std::vector<LockEntry> queue() const;
    /// Writes the queue unless it has these entries already: each write wakes all waiting drivers.
    void put_queue(const std::vector<LockEntry>& entries);
    bool is_held(const std::string& uuid) const;
    /// Returns the holder; nothing if the GPU is not held.
    std::optional<HolderInfo> holder(const std::string& uuid) const;
    /// Reserves a free GPU until all copies of the returned descriptor and of the descriptor for
    /// processes are closed.
    core::Descriptor take(const std::string& uuid, const HolderInfo& holder);
    /// Returns a second lock on a taken GPU, for processes that inherit the descriptor. The lock is
    /// of another kind (fcntl), so that processes which release it do not release the driver's lock
    /// (flock).
    core::Descriptor share(const std::string& uuid);
    /// Takes `count` of the `limit` units of a named limit, which are released with the
    /// descriptors. Takes none if fewer are free.
    std::vector<core::Descriptor> take_units(const std::string& name, unsigned count,
                                             unsigned limit);

   private:
    friend LockFolder;
    explicit Session(LockFolder* folder) : folder_(folder) {}
    LockFolder* folder_;
  };

  /// Returns nothing while another driver has the mutex, which lasts a millisecond unless that
  /// driver is stopped (SIGSTOP).
  std::optional<Session> try_enter();

  /// Registers this driver as alive. @return its token
  const std::string& sign_in();

  /// Returns a descriptor that becomes readable when a reservation or the queue changes; -1 if the
  /// system has no descriptor for it.
  int watch();
  /// Makes the descriptor of watch() unreadable until the next change.
  void forget_changes();

 private:
  core::Descriptor open_file(const std::string& name, int mode) const;
  bool is_alive(const std::string& driver) const;

  std::filesystem::path path_;
  core::Descriptor folder_, mutex_, driver_, watch_;
  std::string token_;
};

}  // namespace pipeline::gpu

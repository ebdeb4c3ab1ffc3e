/// @file
/// The machine's GPU reservations, shared by all drivers of all users: files with locks that the
/// kernel holds (flock), so that no crash leaves one taken.
///
///   mutex       locked for the moment in which a driver looks and decides
///   queue       who waits, as JSON; entries of drivers that are dead count for nothing
///   driver-N    locked while the driver that has written its token there lives
///   <UUID>      locked while the GPU is held: by a driver, and by the processes that inherit the
///   descriptor; who it is, as JSON
///
/// A file is made once and never removed: in a folder that is sticky only its owner could. Whoever
/// closes one of them wakes those who watch the folder.
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

/// Who holds a GPU or waits for one, for people.
struct HolderInfo {
  std::int64_t pid = 0;  ///< Of the driver.
  std::string user, run, step;
  WallTime since{};
  bool gone = false;  ///< The driver has died; a process that it started still holds the GPU.
};

/// `step 'train' of run 20261121-8f3a (pid 4242, user ana)`
std::string to_string(const HolderInfo& holder);

struct Entry {
  std::string driver;  ///< Its token.
  Waiting waiting;
  HolderInfo holder;
};
/// By number; two have the same one only if the queue was lost in between.
std::pair<std::uint64_t, std::string_view> order_of(const Entry& entry);

class LockFolder {
 public:
  /// $PIPE_GPU_LOCKS, else /run/lock/pipe-gpus where everybody may write in /run/lock, else
  /// /tmp/pipe-gpus: the same for every user.
  static std::filesystem::path place();

  /// Makes the folder if it is not there. Throws EnvironmentError where it cannot be used, also if
  /// it is none that everybody may write in and nobody may remove others' files from.
  explicit LockFolder(std::filesystem::path folder = place());

  /// The folder, if some driver has made it already.
  static std::optional<LockFolder> existing();

  /// What can be seen and done while no other driver does.
  class Session {
   public:
    ~Session();
    Session(Session&& other) noexcept : folder_(std::exchange(other.folder_, nullptr)) {}
    Session& operator=(Session&&) = delete;

    std::vector<Entry> queue() const;  ///< Of living drivers, in the order of their numbers.
    /// Writes only what is new: each writing wakes all who wait.
    void put_queue(const std::vector<Entry>& entries);
    bool is_held(const std::string& uuid) const;
    /// Who holds it; if nobody does, nothing.
    std::optional<HolderInfo> holder(const std::string& uuid) const;
    /// Takes a GPU that is not held; it is given back when all copies of the descriptor are closed.
    core::Descriptor take(const std::string& uuid, const HolderInfo& holder);

   private:
    friend LockFolder;
    explicit Session(LockFolder* folder) : folder_(folder) {}
    LockFolder* folder_;
  };

  /// Nothing while another driver is in; that lasts a millisecond, unless it has been stopped
  /// (SIGSTOP).
  std::optional<Session> try_enter();

  /// Says that this driver lives. @return its token
  const std::string& sign_in();

  /// A descriptor that becomes readable when something was given back, taken or left; -1 where the
  /// system has none to give.
  int watch();
  void forget_changes();

 private:
  core::Descriptor open_file(const std::string& name, int mode) const;
  bool is_alive(const std::string& driver) const;

  std::filesystem::path path_;
  core::Descriptor folder_, mutex_, driver_, watch_;
  std::string token_;
};

}  // namespace pipeline::gpu

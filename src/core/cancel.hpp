/// @file
/// Cancellation of work in progress: first gracefully, then at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

namespace pipeline::core {

/// How work is stopped: `graceful` lets it end in order, `immediate` gives it up.
enum class StopLevel { none, graceful, immediate };

/// Owned by the code that may cancel. Single-threaded. Must outlive its listeners.
class CancelSource {
 public:
  CancelSource() = default;
  CancelSource(const CancelSource&) = delete;
  CancelSource& operator=(const CancelSource&) = delete;

  StopLevel level() const { return level_; }
  /// Raises the level, never lowers it, and calls all listeners in the order of their registration.
  /// A callback may add listeners, remove itself or others, and call stop(); it must not throw.
  void stop(StopLevel level);
  /// Lowers the level to none for work that begins from now on. No cancelled work may be running.
  void rearm();

  /// Listens until destroyed. The callback is called at once if the level is already above none.
  class Listener {
   public:
    Listener(CancelSource& source, std::function<void(StopLevel)> callback);
    ~Listener() { source_.entries_.erase(id_); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

   private:
    CancelSource& source_;
    std::uint64_t id_;
  };

 private:
  struct Entry {
    std::function<void(StopLevel)> callback;
    StopLevel notified;
  };
  StopLevel level_ = StopLevel::none;
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, Entry> entries_;
};

}  // namespace pipeline::core

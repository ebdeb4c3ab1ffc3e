/// @file
/// Telling work in progress to stop: first gracefully, then at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

namespace pipeline::core {

enum class StopLevel { none, graceful, immediate };

/// Held by the one who may say stop. One thread. Outlives its listeners.
class CancelSource {
 public:
  CancelSource() = default;
  CancelSource(const CancelSource&) = delete;
  CancelSource& operator=(const CancelSource&) = delete;

  StopLevel level() const { return level_; }
  /// Raises the level and tells all who listen, in the order in which they came; never lowers it. A
  /// callback may add listeners, remove itself or others, and call stop(); it must not throw.
  void stop(StopLevel level);

  /// Listens until destroyed. Called at once if the level is above none already.
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
    StopLevel told;
  };
  StopLevel level_ = StopLevel::none;
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, Entry> entries_;
};

}  // namespace pipeline::core

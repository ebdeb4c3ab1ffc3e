/// @file
/// Telling work in progress to stop: first gracefully, then at once.
#pragma once

#include <functional>
#include <list>

namespace pipeline {

enum class StopLevel { none, graceful, immediate };

/// Held by the one who may say stop. One thread.
class CancelSource {
 public:
  using Callbacks = std::list<std::function<void(StopLevel)>>;
  StopLevel level() const { return level_; }
  /// Raises the level and tells all who listen; never lowers it.
  void stop(StopLevel level);
  /// Listens until destroyed. Called at once if the level is above none already.
  class Listener {
   public:
    Listener(CancelSource& source, std::function<void(StopLevel)> callback);
    ~Listener() { source_.callbacks_.erase(position_); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

   private:
    CancelSource& source_;
    Callbacks::iterator position_;
  };

 private:
  StopLevel level_ = StopLevel::none;
  Callbacks callbacks_;
};

}  // namespace pipeline

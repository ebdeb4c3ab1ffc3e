/// @file
/// A time limit for cancellable work.
#pragma once

#include <memory>
#include <optional>

#include <pipeline/settings.hpp>

#include "async/task.hpp"
#include "core/cancel.hpp"

namespace pipeline::async {

/// Forwards the stops of `outer` to source(), and stops source() itself when the time is up.
class Deadline {
 public:
  /// @param time unset for no limit
  Deadline(const asio::any_io_executor& executor, core::CancelSource& outer,
           std::optional<Duration> time, core::StopLevel how)
      : timer_(executor),
        from_outer_(outer, [this](core::StopLevel level) { source_.stop(level); }) {
    if (!time) return;
    timer_.expires_after(*time);
    timer_.async_wait(
        [this, how, alive = std::weak_ptr<int>(alive_)](boost::system::error_code stopped) {
          if (stopped || alive.expired()) return;
          expired_ = source_.level() == core::StopLevel::none;
          source_.stop(how);
        });
  }
  core::CancelSource& source() { return source_; }
  /// Removes the limit; `outer` still stops source().
  void lift() { timer_.cancel(); }
  /// True if the time was up before `outer` was stopped.
  bool expired() const { return expired_; }

 private:
  core::CancelSource source_;
  bool expired_ = false;
  // Shared with the timer's handler, which may run after this object is destroyed.
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  asio::steady_timer timer_;
  core::CancelSource::Listener from_outer_;
};

}  // namespace pipeline::async

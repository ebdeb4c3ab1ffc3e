/// @file
/// A time limit for cancellable work.
#pragma once

#include <optional>

#include <pipeline/settings.hpp>

#include "async/timeout.hpp"
#include "core/cancel.hpp"

namespace pipeline::async {

/// Forwards the stops of `outer` to source(), and stops source() itself when the time is up.
class Deadline {
 public:
  /// @param time from now; unset for no limit
  /// @param at_expiry the level to which source() is stopped when the time is up
  Deadline(const asio::any_io_executor& executor, core::CancelSource& outer,
           std::optional<Duration> time, core::StopLevel at_expiry)
      : timeout_(executor,
                 [this, at_expiry] {
                   expired_ = source_.level() == core::StopLevel::none;
                   source_.stop(at_expiry);
                 }),
        from_outer_(outer, [this](core::StopLevel level) { source_.stop(level); }) {
    if (time) restart(*time);
  }
  core::CancelSource& source() { return source_; }
  /// Replaces the limit by `time` from now.
  void restart(Duration time) { timeout_.start(time); }
  /// Removes the limit; `outer` still stops source().
  void lift() { timeout_.cancel(); }
  /// Returns true if the time was up before `outer` was stopped.
  bool expired() const { return expired_; }

 private:
  core::CancelSource source_;
  bool expired_ = false;
  Timeout timeout_;
  core::CancelSource::Listener from_outer_;
};

}  // namespace pipeline::async

/// @file
/// A function that is called after some time.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "async/task.hpp"

namespace pipeline::async {

/// Calls its function once for each start() whose time passes before the next start(), cancel() or
/// the destruction.
class Timeout {
 public:
  Timeout(const asio::any_io_executor& executor, std::function<void()> on_expiry)
      : timer_(executor), on_expiry_(std::move(on_expiry)) {}
  void start(std::chrono::steady_clock::duration time) {
    started_ = std::make_shared<char>();
    timer_.expires_after(time);
    timer_.async_wait([this, started = std::weak_ptr(started_)](boost::system::error_code) {
      if (!started.expired()) on_expiry_();
    });
  }
  void cancel() {
    started_.reset();
    timer_.cancel();
  }

 private:
  asio::steady_timer timer_;
  std::function<void()> on_expiry_;
  /// Observed by the handler, which may already be queued when the timer is cancelled or destroyed.
  std::shared_ptr<char> started_;
};

}  // namespace pipeline::async

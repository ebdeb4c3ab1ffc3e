/// @file
/// A condition that coroutines of one thread wait for.
#pragma once

#include "async/task.hpp"

namespace pipeline::async {

/// wait() returns once the gate is open. The gate is closed at first and may be closed again.
/// open() does not resume the waiters itself; the event loop does so later. The gate must outlive
/// its waiters.
class Gate {
 public:
  explicit Gate(const asio::any_io_executor& executor)
      : waiters_(executor, asio::steady_timer::time_point::max()) {}
  bool is_open() const { return is_open_; }
  void open() {
    is_open_ = true;
    waiters_.cancel();
  }
  void close() { is_open_ = false; }
  Task<> wait() {
    while (!is_open_) {
      boost::system::error_code cancelled;
      co_await waiters_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }
  }

 private:
  /// A timer that never expires. The timer owns the waiters' handlers, so that waiting coroutines
  /// are freed with the loop.
  asio::steady_timer waiters_;
  bool is_open_ = false;
};

}  // namespace pipeline::async

/// @file
/// Wakes a coroutine that waits for changes of a state.
#pragma once

#include <chrono>
#include <utility>

#include "async/task.hpp"

namespace pipeline::async {

/// A notification from one coroutine to another that a state has changed. If nobody waits when
/// tell() is called, the next wait() returns at once. The object must outlive its waiter, of which
/// there is at most one. wait() may also return without a change, so the waiter checks the state.
class Change {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Change(const asio::any_io_executor& executor) : timer_(executor, TimePoint::max()) {}
  void tell() {
    has_changed_ = true;
    timer_.cancel();
  }
  /// Waits for a change since the last wait() returned, but no longer than until `limit`.
  Task<> wait(TimePoint limit = TimePoint::max()) {
    if (std::exchange(has_changed_, false)) co_return;
    timer_.expires_at(limit);
    boost::system::error_code cancelled;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    has_changed_ = false;
  }

 private:
  asio::steady_timer timer_;
  bool has_changed_ = false;
};

}  // namespace pipeline::async

/// @file
/// Something that happens once, and that coroutines wait for.
#pragma once

#include "net/asio.hpp"

namespace pipeline::net {

/// A waiter is resumed from the loop, never from within set(). Must outlive its waiters; used from the loop's thread only.
class Event {
 public:
  explicit Event(const asio::any_io_executor& executor) : never_(executor, asio::steady_timer::time_point::max()) {}
  void set() {
    happened_ = true;
    never_.cancel();
  }
  bool happened() const { return happened_; }
  Task<> wait() {
    while (!happened_) {
      boost::system::error_code cancelled;
      co_await never_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }
  }

 private:
  asio::steady_timer never_;  ///< Owns the waiters' handlers, so that coroutines which still wait are freed with the loop.
  bool happened_ = false;
};

}  // namespace pipeline::net

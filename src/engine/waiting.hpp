/// @file
/// Coroutines waiting for one another, on one thread.
#pragma once

#include <limits>
#include <set>
#include <utility>

#include "net/asio.hpp"

namespace pipeline::engine {

/// Opens once; whoever waits goes on. Must outlive its waiters.
class Gate {
 public:
  explicit Gate(const asio::any_io_executor& executor) : timer_(executor, asio::steady_timer::time_point::max()) {}
  bool is_open() const { return open_; }
  void open() {
    open_ = true;
    timer_.cancel();
  }
  void close() { open_ = false; }
  Task<> wait() {
    while (!open_) {
      boost::system::error_code ignored;
      co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
  }

 private:
  asio::steady_timer timer_;
  bool open_ = false;
};

/// A number of slots; of those that wait, the one with the lowest rank gets the next.
class Slots {
 public:
  explicit Slots(unsigned count) : free_(count) {}
  bool try_acquire() {
    if (free_ == 0) return false;
    --free_;
    return true;
  }
  Task<> acquire(std::size_t rank) {
    if (try_acquire()) co_return;
    Gate gate(co_await asio::this_coro::executor);
    waiting_.insert({rank, &gate});
    co_await gate.wait();
  }
  void release() {
    if (waiting_.empty()) {
      ++free_;
    } else {
      auto* gate = waiting_.begin()->second;
      waiting_.erase(waiting_.begin());
      gate->open();
    }
  }

 private:
  unsigned free_;
  std::set<std::pair<std::size_t, Gate*>> waiting_;
};

/// Runs blocking work on a thread of the pool; the coroutine goes on where it was.
template <class Work>
Task<std::invoke_result_t<Work>> on_pool(asio::thread_pool& pool, Work work) {
  co_return co_await asio::co_spawn(
      pool, [&work]() -> Task<std::invoke_result_t<Work>> { co_return work(); }, asio::use_awaitable);
}

}  // namespace pipeline::engine

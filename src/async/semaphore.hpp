/// @file
/// A counting semaphore for coroutines, with priorities.
#pragma once

#include <set>
#include <utility>

#include "async/gate.hpp"

namespace pipeline::async {

/// A number of slots. When a slot is released, the waiter with the lowest rank gets it.
class Semaphore {
 public:
  /// @param count of slots
  explicit Semaphore(unsigned count) : count_(count), free_(count) {}
  unsigned count() const { return count_; }
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
  unsigned count_, free_;
  std::set<std::pair<std::size_t, Gate*>> waiting_;
};

/// Releases a slot that has been acquired, at the end of its scope.
class Permit {
 public:
  explicit Permit(Semaphore& semaphore) : semaphore_(semaphore) {}
  ~Permit() { semaphore_.release(); }
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;

 private:
  Semaphore& semaphore_;
};

}  // namespace pipeline::async

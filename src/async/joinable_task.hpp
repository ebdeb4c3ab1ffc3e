/// @file
/// A coroutine that runs beside the one that starts it.
#pragma once

#include <exception>
#include <functional>
#include <utility>

#include "async/gate.hpp"

namespace pipeline::async {

/// Starts with its construction. Whoever makes one joins it before it is destroyed, also when
/// something throws in between.
class JoinableTask {
 public:
  /// @param on_done called at its end, well or not; must not throw
  JoinableTask(const asio::any_io_executor& executor, Task<> task,
               std::function<void()> on_done = {})
      : done_(executor), on_done_(std::move(on_done)) {
    asio::co_spawn(executor, std::move(task), [this](std::exception_ptr error) {
      error_ = std::move(error);
      done_.open();
      if (on_done_) on_done_();
    });
  }
  JoinableTask(const JoinableTask&) = delete;
  JoinableTask& operator=(const JoinableTask&) = delete;
  bool done() const { return done_.is_open(); }
  const std::exception_ptr& error() const { return error_; }
  /// Returns once it is done; its error stays in error().
  Task<> join() { return done_.wait(); }

 private:
  Gate done_;
  std::function<void()> on_done_;
  std::exception_ptr error_;
};

}  // namespace pipeline::async

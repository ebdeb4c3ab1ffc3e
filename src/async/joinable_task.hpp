/// @file
/// A coroutine that runs concurrently with its creator.
#pragma once

#include <exception>
#include <functional>
#include <utility>

#include "async/gate.hpp"

namespace pipeline::async {

/// The constructor starts the task. The creator must await join() before this object is destroyed,
/// also when an exception is thrown in between.
class JoinableTask {
 public:
  /// @param on_done called at the end, also after an error; must not throw
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
  /// Returns once the task has ended. Does not throw the task's exception, which error() returns.
  Task<> join() { return done_.wait(); }

 private:
  Gate done_;
  std::function<void()> on_done_;
  std::exception_ptr error_;
};

}  // namespace pipeline::async

/// @file
/// Coroutines that run concurrently with their creator and are awaited together.
#pragma once

#include <exception>
#include <functional>
#include <utility>

#include "async/gate.hpp"

namespace pipeline::async {

/// The owner must await join() before it destroys the group or anything that the tasks refer to.
class TaskGroup {
 public:
  /// @param on_end called after each task, with its exception or null; must not throw
  explicit TaskGroup(asio::any_io_executor executor,
                     std::function<void(const std::exception_ptr&)> on_end = {})
      : executor_(std::move(executor)), ended_(executor_), on_end_(std::move(on_end)) {}
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  void spawn(Task<> task) {
    ++running_;
    asio::co_spawn(executor_, std::move(task), [this](const std::exception_ptr& error) {
      if (on_end_) on_end_(error);
      --running_;
      ended_.open();
    });
  }
  bool is_empty() const { return running_ == 0; }
  /// Returns once all tasks have ended, including those that were spawned meanwhile.
  Task<> join() {
    while (!is_empty()) {
      ended_.close();
      co_await ended_.wait();
    }
  }

 private:
  asio::any_io_executor executor_;
  Gate ended_;
  std::function<void(const std::exception_ptr&)> on_end_;
  std::size_t running_ = 0;
};

}  // namespace pipeline::async

/// @file
/// Waits for a coroutine from outside of any coroutine.
#pragma once

#include <exception>
#include <optional>
#include <utility>

#include "async/task.hpp"

namespace pipeline::async {

/// Runs the loop until the task has ended; returns its result or throws its exception. Other
/// coroutines of the loop proceed meanwhile.
template <class T>
T await(asio::io_context& loop, Task<T> task) {
  std::exception_ptr error;
  std::optional<T> result;
  asio::co_spawn(loop, std::move(task), [&](std::exception_ptr failed, T value) {
    error = failed;
    if (!failed) result.emplace(std::move(value));
    loop.stop();
  });
  loop.restart();
  loop.run();
  if (error) std::rethrow_exception(error);
  return std::move(result.value());
}

inline void await(asio::io_context& loop, Task<> task) {
  std::exception_ptr error;
  asio::co_spawn(loop, std::move(task), [&](std::exception_ptr failed) {
    error = failed;
    loop.stop();
  });
  loop.restart();
  loop.run();
  if (error) std::rethrow_exception(error);
}

}  // namespace pipeline::async

/// @file
/// Runs coroutines in tests.
#pragma once

#include <exception>
#include <optional>
#include <utility>

#include "async/task.hpp"

namespace pipeline::test {

/// Runs the loop until the coroutine has finished; returns its result or throws its exception.
template <class T>
T run_task(asio::io_context& loop, async::Task<T> task) {
  std::exception_ptr error;
  std::optional<T> result;
  bool done = false;
  asio::co_spawn(loop, std::move(task), [&](std::exception_ptr failed, T value) {
    error = failed;
    if (!failed) result.emplace(std::move(value));
    done = true;
  });
  loop.restart();
  while (!done && loop.run_one() > 0) {
  }
  if (error) std::rethrow_exception(error);
  return std::move(result.value());
}

inline void run_task(asio::io_context& loop, async::Task<> task) {
  run_task<bool>(loop, [](async::Task<> inner) -> async::Task<bool> {
    co_await std::move(inner);
    co_return true;
  }(std::move(task)));
}

}  // namespace pipeline::test

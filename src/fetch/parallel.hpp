/// @file
/// Concurrent work on many items.
#pragma once

#include <deque>
#include <exception>
#include <functional>

#include "async/joinable_task.hpp"
#include "async/task.hpp"

namespace pipeline::fetch {

/// Calls `work(0)`, ..., `work(count - 1)`, at limit `limit` of them at a time, and waits for all.
/// After an exception, no further item begins; the first exception is thrown at the end.
inline async::Task<> for_each(std::size_t count, std::size_t limit,
                              const std::function<async::Task<>(std::size_t)>& work) {
  std::size_t next = 0;
  std::exception_ptr error;
  const auto worker = [&]() -> async::Task<> {
    while (next < count && !error) {
      const auto item = next++;
      try {
        co_await work(item);
      } catch (...) {
        if (!error) error = std::current_exception();
      }
    }
  };
  const auto executor = co_await asio::this_coro::executor;
  std::deque<async::JoinableTask> workers;
  for (std::size_t i = 0; i < std::min(count, limit); ++i) workers.emplace_back(executor, worker());
  for (auto& each : workers) co_await each.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace pipeline::fetch

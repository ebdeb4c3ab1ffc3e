/// @file
/// Concurrent work on many items, which are given by their indices. for_each.hpp has the variant
/// for the items of a container.
#pragma once

#include <algorithm>
#include <deque>
#include <exception>
#include <functional>

#include <boost/asio/post.hpp>

#include "async/joinable_task.hpp"
#include "async/task.hpp"

namespace pipeline::async {

/// Calls `work(0)`, ..., `work(count - 1)`, at most `limit()` of them at a time, and waits for all.
/// The limit may change meanwhile. After an exception, no further item begins; the first exception
/// is thrown at the end.
inline Task<> for_each(std::size_t count, const std::function<std::size_t()>& limit,
                       const std::function<Task<>(std::size_t)>& work) {
  std::size_t next = 0, running = 0;
  std::exception_ptr error;
  const auto executor = co_await asio::this_coro::executor;
  std::deque<JoinableTask> workers;
  std::function<void()> start_others;
  const auto worker = [&]() -> Task<> {
    // Resumes later: otherwise start_others() would run the worker's first item itself.
    co_await asio::post(executor, asio::use_awaitable);
    // The last worker continues even under a limit of 0, so that the work ends.
    while (next < count && !error && (running == 1 || running <= limit())) {
      const auto item = next++;
      try {
        co_await work(item);
      } catch (...) {
        if (!error) error = std::current_exception();
      }
      start_others();
    }
    --running;
  };
  start_others = [&] {
    while (next < count && !error && running < std::min(limit(), count)) {
      ++running;
      workers.emplace_back(executor, worker());
    }
  };
  if (count > 0) {
    ++running;
    workers.emplace_back(executor, worker());
  }
  start_others();
  for (std::size_t i = 0; i < workers.size(); ++i) co_await workers[i].join();
  if (error) std::rethrow_exception(error);
}

/// Calls `work(0)`, ..., `work(count - 1)` as above, with a fixed limit.
inline Task<> for_each(std::size_t count, std::size_t limit,
                       const std::function<Task<>(std::size_t)>& work) {
  const std::function<std::size_t()> fixed = [limit] { return limit; };
  co_await for_each(count, fixed, work);
}

}  // namespace pipeline::async

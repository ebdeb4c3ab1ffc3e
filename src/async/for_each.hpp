/// @file
/// Concurrent work on the items of a container, with a fixed limit. parallel.hpp has the variant
/// for indices, whose limit may change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iterator>

#include "async/task_group.hpp"

namespace pipeline::async {

/// Calls `work`, which returns a Task<>, for each item, at most `max_running` at a time. Once a
/// task has failed, no other begins; when all running tasks have ended, the first error is thrown.
template <class Items, class Work>
Task<> for_each(Items& items, std::size_t max_running, Work&& work) {
  static_assert(is_safe_in_await<Work>);
  auto next = std::begin(items);
  std::exception_ptr failed;
  TaskGroup workers(co_await asio::this_coro::executor, [&](const std::exception_ptr& error) {
    if (error && !failed) failed = error;
  });
  const auto work_on_items = [&]() -> Task<> {
    while (next != std::end(items) && !failed) {
      auto& item = *next++;
      co_await work(item);
    }
  };
  for (auto count = std::min(max_running, std::size(items)); count > 0; --count)
    workers.spawn(work_on_items());
  co_await workers.join();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace pipeline::async

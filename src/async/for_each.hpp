/// @file
/// The same work for many items, some of them at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iterator>

#include "async/task_group.hpp"

namespace pipeline::async {

/// Calls `work`, which returns a Task<>, for each item, at most `max_running` at a time. Once one
/// has failed no other begins, and when all have ended the first error is thrown.
template <class Items, class Work>
Task<> for_each(Items& items, std::size_t max_running, Work&& work) {
  static_assert(is_safe_in_await<Work>);
  auto next = std::begin(items);
  std::exception_ptr failed;
  TaskGroup workers(co_await asio::this_coro::executor, [&](const std::exception_ptr& error) {
    if (error && !failed) failed = error;
  });
  const auto go = [&]() -> Task<> {
    while (next != std::end(items) && !failed) {
      auto& item = *next++;
      co_await work(item);
    }
  };
  for (auto count = std::min(max_running, std::size(items)); count > 0; --count)
    workers.spawn(go());
  co_await workers.join();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace pipeline::async

/// @file
/// Runs blocking work beside the event loop.
#pragma once

#include <type_traits>

#include <boost/asio/bind_cancellation_slot.hpp>

#include "async/task.hpp"

namespace pipeline::async {

/// Runs blocking work on a thread of the pool and resumes the coroutine on its own executor. Work
/// that has begun is not cancelled: Asio would emit the cancellation on the pool's thread, where it
/// races with the end of the work.
template <class Work>
Task<std::invoke_result_t<Work>> on_pool(asio::thread_pool& pool, Work work) {
  co_return co_await asio::co_spawn(
      pool, [&work]() -> Task<std::invoke_result_t<Work>> { co_return work(); },
      asio::bind_cancellation_slot(asio::cancellation_slot(), asio::use_awaitable));
}

}  // namespace pipeline::async

#include "async/on_pool.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace pipeline::async {
namespace {

using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;

Task<> after(std::chrono::microseconds time) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  co_await timer.async_wait(asio::use_awaitable);
}

/// Both ends are near each other in every order. Asio emits a cancellation that reaches the pool on
/// one of its threads, beside the end of the work.
Task<> cancel_often(asio::thread_pool& pool, int times, int& ended) {
  for (int i = 0; i < times; ++i) {
    const auto work = [i, &ended] {
      std::this_thread::sleep_for(std::chrono::microseconds(i % 100));
      return ++ended;
    };
    auto race = on_pool(pool, work) || after(std::chrono::microseconds(i % 70));
    co_await std::move(race);
  }
}

TEST(OnPool, cancelled_work_runs_to_its_end_and_is_waited_for) {
  asio::io_context loop;
  asio::thread_pool pool(2);
  constexpr int times = 2000;
  int ended = 0;
  std::exception_ptr failure;
  asio::co_spawn(loop, cancel_often(pool, times, ended),
                 [&](std::exception_ptr error) { failure = error; });
  loop.run();
  EXPECT_EQ(failure, nullptr);
  EXPECT_EQ(ended, times) << "work that has begun is waited for";
}

}  // namespace
}  // namespace pipeline::async

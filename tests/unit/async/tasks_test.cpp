#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "async/await.hpp"
#include "async/change.hpp"
#include "async/deadline.hpp"
#include "async/finally.hpp"
#include "async/single_flight.hpp"
#include "async/sleep.hpp"
#include "async/timeout.hpp"

namespace pipeline::async {
namespace {

using std::chrono::milliseconds;

const std::string long_text(100, 'x');  // Too long to be stored within the object itself.

class Tasks : public testing::Test {
 protected:
  Task<std::string> text(bool fails) {
    co_await sleep(milliseconds(1));
    steps.emplace_back("work");
    if (fails) throw std::runtime_error("work failed");
    co_return long_text;
  }
  Task<> clean(bool fails) {
    co_await sleep(milliseconds(1));
    steps.emplace_back("cleanup");
    if (fails) throw std::runtime_error("cleanup failed");
  }
  Task<std::string> cleaned(bool work_fails, bool cleanup_fails) {
    co_return co_await finally(text(work_fails), [&] { return clean(cleanup_fails); });
  }
  std::string error_of(Task<std::string> task) {
    try {
      await(loop, std::move(task));
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

  asio::io_context loop;
  std::vector<std::string> steps;
};

TEST_F(Tasks, cleanup_runs_after_the_work_and_its_result_is_returned) {
  EXPECT_EQ(await(loop, cleaned(false, false)), long_text);
  EXPECT_EQ(steps, (std::vector<std::string>{"work", "cleanup"}));
}

TEST_F(Tasks, cleanup_runs_after_failed_work_and_the_works_error_is_thrown) {
  EXPECT_EQ(error_of(cleaned(true, false)), "work failed");
  EXPECT_EQ(error_of(cleaned(true, true)), "work failed");
  EXPECT_EQ(steps, (std::vector<std::string>{"work", "cleanup", "work", "cleanup"}));
}

TEST_F(Tasks, error_of_cleanup_is_thrown_after_good_work) {
  EXPECT_EQ(error_of(cleaned(false, true)), "cleanup failed");
}

TEST_F(Tasks, cleanup_runs_after_work_without_a_result) {
  const auto both = [this]() -> Task<> {
    co_await finally(clean(false), [&] { return clean(false); });
  };
  await(loop, both());
  EXPECT_EQ(steps.size(), 2U);
}

TEST_F(Tasks, changes_that_nobody_waited_for_wake_the_next_waiter_once) {
  using Clock = std::chrono::steady_clock;
  Change change(loop.get_executor());
  change.tell();
  change.tell();
  const auto limit = Clock::now() + milliseconds(50);
  await(loop, change.wait());  // Would wait for ever if the change before were forgotten.
  await(loop, change.wait(limit));
  EXPECT_GE(Clock::now(), limit);
}

TEST_F(Tasks, change_wakes_the_waiter) {
  Change change(loop.get_executor());
  const auto both = [&]() -> Task<> {
    asio::post(loop, [&] { change.tell(); });
    co_await change.wait();
  };
  await(loop, both());
}

TEST_F(Tasks, timeout_calls_its_function_once_for_each_start) {
  int calls = 0;
  Timeout timeout(loop.get_executor(), [&] { ++calls; });
  timeout.start(milliseconds(1));
  timeout.start(milliseconds(2));
  loop.run();
  EXPECT_EQ(calls, 1);
}

TEST_F(Tasks, timeout_that_is_cancelled_or_destroyed_calls_nothing) {
  int calls = 0;
  {
    Timeout cancelled(loop.get_executor(), [&] { ++calls; });
    cancelled.start(milliseconds(0));
    cancelled.cancel();
    Timeout destroyed(loop.get_executor(), [&] { ++calls; });
    destroyed.start(milliseconds(0));
  }
  loop.run();
  EXPECT_EQ(calls, 0);
}

TEST_F(Tasks, timeout_that_is_cancelled_when_its_handler_is_queued_calls_nothing) {
  int calls = 0;
  Timeout second(loop.get_executor(), [&] { ++calls; });
  Timeout first(loop.get_executor(), [&] { second.cancel(); });
  first.start(milliseconds(0));
  second.start(milliseconds(1));
  std::this_thread::sleep_for(milliseconds(5));  // Both have expired when the loop starts.
  loop.run();
  EXPECT_EQ(calls, 0);
}

TEST_F(Tasks, deadline_that_is_restarted_counts_from_then) {
  core::CancelSource outer;
  Deadline deadline(loop.get_executor(), outer, std::chrono::hours(1), core::StopLevel::immediate);
  deadline.restart(milliseconds(1));
  await(loop, sleep(std::chrono::hours(1), &deadline.source()));
  EXPECT_TRUE(deadline.expired());
}

TEST_F(Tasks, deadline_forwards_the_outer_stop) {
  core::CancelSource outer;
  Deadline deadline(loop.get_executor(), outer, {}, core::StopLevel::immediate);
  outer.stop(core::StopLevel::graceful);
  EXPECT_EQ(deadline.source().level(), core::StopLevel::graceful);
  EXPECT_FALSE(deadline.expired());
}

TEST_F(Tasks, sleep_ends_when_it_is_cancelled) {
  core::CancelSource cancel;
  Timeout stop(loop.get_executor(), [&] { cancel.stop(core::StopLevel::immediate); });
  stop.start(milliseconds(1));
  await(loop, sleep(std::chrono::hours(1), &cancel));
  await(loop, sleep(std::chrono::hours(1), &cancel));
  EXPECT_EQ(cancel.level(), core::StopLevel::immediate);
}

TEST_F(Tasks, single_flight_computes_a_value_once) {
  SingleFlight<std::string> texts(loop);
  const auto ask = [&]() -> Task<std::string> {
    const std::string key = long_text;
    co_return co_await texts.get(
        key, [&] { return text(key.empty()); }, nullptr);
  };
  EXPECT_EQ(await(loop, ask()), long_text);
  EXPECT_EQ(await(loop, ask()), long_text);
  EXPECT_EQ(steps.size(), 1U);
}

TEST_F(Tasks, single_flight_tries_again_after_a_failure) {
  SingleFlight<std::string> texts(loop);
  const auto ask = [&](bool fails) -> Task<std::string> {
    co_return co_await texts.get(
        "key", [this, fails] { return text(fails); }, nullptr);
  };
  EXPECT_EQ(error_of(ask(true)), "work failed");
  EXPECT_EQ(await(loop, ask(false)), long_text);
}

}  // namespace
}  // namespace pipeline::async

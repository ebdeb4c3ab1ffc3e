#include "cli/signals.hpp"

#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include "core/reading_stop.hpp"

namespace pipeline::cli {
namespace {

TEST(StopOnSignals, a_late_signal_does_not_end_the_process) {
  EXPECT_EXIT(
      {
        asio::io_context loop;
        core::CancelSource cancel;
        {
          const StopOnSignals signals(loop, cancel, [](std::string_view) {});
        }
        for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::raise(number);
        ::_exit(7);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST(StopOnSignals, a_second_signal_ends_loops_of_a_thread_that_handles_none) {
  asio::io_context loop;
  core::CancelSource cancel;
  const StopOnSignals signals(loop, cancel, [](std::string_view) {});
  ::raise(SIGINT);
  EXPECT_NO_THROW(core::check_reading());
  ::raise(SIGINT);
  EXPECT_THROW(core::check_reading(), core::Stopped);
  core::permit_reading();
}

TEST(StopOnSignals, signals_stop_the_work) {
  asio::io_context loop;
  core::CancelSource cancel;
  const StopOnSignals signals(loop, cancel, [](std::string_view) {});
  const auto level_after = [&](int number) {
    const auto before = cancel.level();
    ::raise(number);
    while (cancel.level() == before && loop.run_one() > 0) {
    }
    return cancel.level();
  };
  EXPECT_EQ(level_after(SIGTERM), core::StopLevel::graceful);
  EXPECT_EQ(level_after(SIGINT), core::StopLevel::immediate);
}

}  // namespace
}  // namespace pipeline::cli

#include "orchestrators/last_output.hpp"

#include <gtest/gtest.h>

#include "async/sleep.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators {
namespace {

using test::run_task;

/// A stream that a server sends without end.
struct Endless {
  async::Task<> send() {
    while (stream.level() == core::StopLevel::none) {
      ++received;
      co_await async::sleep(std::chrono::milliseconds(1), &stream);
    }
  }
  async::Task<> read(core::CancelSource& cancel) {
    const auto executor = co_await asio::this_coro::executor;
    async::Change changed(executor);
    async::JoinableTask output(executor, send(), [&changed] { changed.tell(); });
    co_await read_last_output(output, changed, received, cancel, stream);
  }
  std::uint64_t received = 0;
  core::CancelSource stream;
};

TEST(LastOutput, without_end_is_given_up_after_a_stop_at_once) {
  asio::io_context loop;
  for (const bool is_stopped_before : {true, false}) {
    Endless server;
    core::CancelSource cancel;
    asio::steady_timer later(loop, std::chrono::milliseconds(50));
    if (is_stopped_before)
      cancel.stop(core::StopLevel::immediate);
    else
      later.async_wait([&](boost::system::error_code) {
        EXPECT_EQ(server.stream.level(), core::StopLevel::none);
        cancel.stop(core::StopLevel::immediate);
      });
    run_task(loop, server.read(cancel));
    EXPECT_GT(server.received, 10u) << "output that is on its way still arrives";
  }
}

}  // namespace
}  // namespace pipeline::orchestrators

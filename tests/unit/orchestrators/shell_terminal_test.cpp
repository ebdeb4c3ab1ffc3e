#include "orchestrators/shell_terminal.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>

#include <gtest/gtest.h>

#include "async/sleep.hpp"
#include "core/file.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators {
namespace {

TEST(ShellTerminal, reads_a_terminal_also_where_the_output_is_none) {
  const core::Descriptor controller(::posix_openpt(O_RDWR | O_NOCTTY));
  ASSERT_TRUE(controller && ::grantpt(controller.get()) == 0 && ::unlockpt(controller.get()) == 0);
  const core::Descriptor terminal(::open(::ptsname(controller.get()), O_RDWR | O_NOCTTY));
  ASSERT_TRUE(terminal);
  const core::Descriptor input_before(::dup(STDIN_FILENO));
  ASSERT_NE(::dup2(terminal.get(), STDIN_FILENO), -1);
  asio::io_context loop;
  std::string sent;
  RemoteShell shell;
  shell.send = [&sent](std::string bytes) -> async::Task<> {
    sent += bytes;
    co_return;
  };
  shell.end_input = []() -> async::Task<> { co_return; };
  shell.pass_output = [&]() -> async::Task<> {
    EXPECT_EQ(core::write_all(controller.get(), "ls\n"), 0);
    for (int looks = 0; sent.empty() && looks < 1000; ++looks)
      co_await async::sleep(std::chrono::milliseconds(10));
  };
  const bool has_terminal = false;
  test::run_task(loop, connect_terminal(std::move(shell), has_terminal));
  ::dup2(input_before.get(), STDIN_FILENO);
  EXPECT_EQ(sent, "ls\n");
}

}  // namespace
}  // namespace pipeline::orchestrators

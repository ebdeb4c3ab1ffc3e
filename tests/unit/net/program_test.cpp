#include "net/program.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include <fcntl.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "net/child.hpp"
#include "support/sanitizers.hpp"

namespace pipeline::net {
namespace {

ProgramAnswer answer_of(ProgramCall call) {
  asio::io_context loop;
  ProgramAnswer answer;
  asio::co_spawn(loop, run_program(std::move(call)),
                 [&](std::exception_ptr error, ProgramAnswer result) {
                   if (error) std::rethrow_exception(error);
                   answer = std::move(result);
                 });
  loop.run();
  return answer;
}

ProgramCall shell(const std::string& script) {
  ProgramCall call;
  call.command = {"sh", "-c", script};
  return call;
}

TEST(Program, reads_its_input_and_answers) {
  auto call = shell("cat; echo \"$PROGRAM_TEST\" >&2; exit 7");
  call.input = "asked";
  call.variables = {"PROGRAM_TEST=given"};
  const auto answer = answer_of(call);
  EXPECT_EQ(answer.output, "asked");
  EXPECT_EQ(answer.errors, "given\n");
  EXPECT_EQ(answer.code, 7);
  EXPECT_FALSE(answer.late);
}

TEST(Program, that_a_signal_ends_has_no_code) {
  EXPECT_EQ(answer_of(shell("kill -9 $$")).code, -1);
}

TEST(Program, that_does_not_exist_is_an_error) {
  if (test::under_tsan) GTEST_SKIP() << test::vfork_is_fork;
  ProgramCall call;
  call.command = {"no-such-program-of-ours"};
  try {
    answer_of(call);
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_STREQ(error.what(), "it is not on the PATH");
  }
  call.command = {"/"};
  EXPECT_THROW(answer_of(call), core::EnvironmentError);
  call.command = {"/no-such-folder/program"};
  try {
    answer_of(call);
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_STREQ(error.what(),
                 "its file, or the interpreter that the file's first line names, does not exist");
  }
}

TEST(Program, that_does_not_end_is_killed) {
  auto call = shell("echo begun; exec sleep 1000");
  call.timeout = std::chrono::milliseconds(50);
  const auto answer = answer_of(call);
  EXPECT_TRUE(answer.late);
  EXPECT_EQ(answer.code, -1);
}

TEST(Program, whose_child_keeps_its_output_open_is_waited_for_only_until_its_limit) {
  auto call = shell("sleep 1000 & echo $!");
  call.timeout = std::chrono::milliseconds(200);
  const auto answer = answer_of(call);
  EXPECT_TRUE(answer.late);
  ASSERT_FALSE(answer.output.empty());
  ::kill(std::stoi(answer.output), SIGKILL);
}

TEST(Program, with_endless_output_is_killed) {
  EXPECT_EQ(answer_of(shell("yes")).output.size(), std::size_t{16} << 20);
}

TEST(Child, in_a_session_of_its_own_ends_by_a_signal_and_is_reaped) {
  asio::io_context loop;
  const core::Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ChildCall call{{"sleep", "1000"}, {}, null.get(), null.get(), null.get()};
  call.own_session = true;
  Child child(loop.get_executor(), call);
  EXPECT_TRUE(child.is_running());
  child.signal(SIGTERM);
  child.wait();
  EXPECT_FALSE(child.is_running());
  EXPECT_EQ(child.exit_code(), -1);
  child.signal(SIGTERM);  // The process has ended, so this has no effect.
  child.wait();
}

}  // namespace
}  // namespace pipeline::net

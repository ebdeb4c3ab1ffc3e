#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "orchestrators/processes/file_lock.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators::processes {
namespace {

TEST(FileLock, a_stopped_wait_tells_once_that_it_waits_and_names_the_file) {
  asio::io_context loop;
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "image.sqsh.lock";
  core::CancelSource cancel;
  const auto held = test::run_task(loop, take_lock(
                                             file, [] {}, cancel));
  int waits = 0;
  std::string message;
  try {
    test::run_task(loop, take_lock(
                             file,
                             [&] {
                               ++waits;
                               cancel.stop(core::StopLevel::graceful);
                             },
                             cancel));
  } catch (const core::EnvironmentError& error) {
    message = error.what();
  }
  EXPECT_EQ(waits, 1);
  EXPECT_THAT(message, testing::HasSubstr(file.string()));
  EXPECT_THAT(message, testing::Not(testing::HasSubstr("virtual environment")));
}

}  // namespace
}  // namespace pipeline::orchestrators::processes

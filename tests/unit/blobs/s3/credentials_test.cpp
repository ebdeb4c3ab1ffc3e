#include "blobs/s3/credentials.hpp"

#include <cstdlib>
#include <list>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/joinable_task.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "support/run_task.hpp"
#include "support/sanitizers.hpp"

namespace pipeline::blobs::s3 {
namespace {

using testing::HasSubstr;

/// A profile with a `credential_process`, which counts its calls in a file.
class ACredentialProcess : public testing::Test {
 protected:
  void SetUp() override {
    if (test::under_tsan) GTEST_SKIP() << test::vfork_is_fork;
    setenv("AWS_CONFIG_FILE", (folder.path() / "config").c_str(), 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", (folder.path() / "none").c_str(), 1);
  }
  void TearDown() override {
    unsetenv("AWS_CONFIG_FILE");
    unsetenv("AWS_SHARED_CREDENTIALS_FILE");
  }
  void prints(const std::string& answer) {
    const auto program = folder.path() / "program";
    core::write_file_atomically(program,
                                "echo x >> " + count.string() + "\necho '" + answer + "'\n");
    core::write_file_atomically(
        folder.path() / "config",
        "[profile team]\ncredential_process = sh " + program.string() + "\n");
  }
  /// Returns the ids of the keys that callers get who begin together; an error's text for a
  /// failure.
  std::vector<std::string> find_together(CredentialSource& source, std::size_t callers) {
    std::vector<std::string> ids(callers);
    const auto find = [&source](std::string& id) -> async::Task<> {
      try {
        const auto found = co_await source.find();
        id = found.keys.id;
      } catch (const core::EnvironmentError& error) {
        id = error.what();
      }
    };
    const auto all = [&]() -> async::Task<> {
      const auto executor = co_await asio::this_coro::executor;
      std::list<async::JoinableTask> calls;
      for (auto& id : ids) calls.emplace_back(executor, find(id));
      for (auto& call : calls) co_await call.join();
    };
    test::run_task(loop, all());
    return ids;
  }

  asio::io_context loop;
  core::TemporaryFolder folder;
  std::filesystem::path count = folder.path() / "count";
};

TEST_F(ACredentialProcess,
       runs_once_for_the_requests_that_begin_together_and_until_its_keys_expire) {
  prints(R"({"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "B"})");
  CredentialSource lasting(loop, "team");
  EXPECT_THAT(find_together(lasting, 3), testing::Each("A"));
  EXPECT_THAT(find_together(lasting, 1), testing::Each("A"));
  EXPECT_EQ(core::read_file(count), "x\n");
  prints(R"({"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "B",
             "Expiration": "2001-01-01T00:00:00Z"})");
  CredentialSource expired(loop, "team");
  EXPECT_THAT(find_together(expired, 3), testing::Each("A"));
  EXPECT_THAT(find_together(expired, 1), testing::Each("A"));
  EXPECT_EQ(core::read_file(count), "x\nx\nx\n");
}

TEST_F(ACredentialProcess,
       that_fails_is_the_error_of_all_that_wait_and_runs_again_for_later_requests) {
  prints("no session");
  CredentialSource source(loop, "team");
  EXPECT_THAT(find_together(source, 3), testing::Each(HasSubstr("printed no keys")));
  EXPECT_EQ(core::read_file(count), "x\n");
  prints(R"({"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "B"})");
  EXPECT_THAT(find_together(source, 1), testing::Each("A"));
}

}  // namespace
}  // namespace pipeline::blobs::s3

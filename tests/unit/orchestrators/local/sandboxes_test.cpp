#include <fcntl.h>

#include <string>

#include <gtest/gtest.h>

#include "orchestrators/local/sandboxes.hpp"
#include "orchestrators/processes/process.hpp"
#include "orchestrators/processes/workspace.hpp"
#include "support/attempt_builder.hpp"

namespace pipeline::test {
namespace {

using namespace orchestrators::local;
using namespace orchestrators::processes;

class SandboxesOfSteps : public testing::Test {
 protected:
  void SetUp() override {
    if (!Sandbox::is_available()) GTEST_SKIP() << "the kernel has no Landlock";
    process.program = "/bin/true";
    process.environment = {{"PATH", "/usr/bin:/bin"}, {"HOME", home.path().string()}};
  }
  std::shared_ptr<const Sandbox> sandbox_for(const std::vector<fs::path>& programs) {
    ShortFolders short_folders;
    const auto attempt = step.attempt();
    const Workspace workspace(attempt, short_folders);
    return sandboxes.sandbox_of(attempt, workspace, programs, process);
  }

  core::TemporaryFolder root, home, other_home, state;
  AttemptBuilder step{shell("true")};
  ProcessOptions process;
  Sandboxes sandboxes{root.path(), state.path(), state.path() / "environments"};
};

TEST_F(SandboxesOfSteps, steps_that_read_the_same_files_share_a_sandbox) {
  EXPECT_EQ(sandbox_for({}), sandbox_for({}));
}

TEST_F(SandboxesOfSteps, steps_with_different_home_folders_have_different_sandboxes) {
  const auto first = sandbox_for({});
  process.environment["HOME"] = other_home.path().string();
  EXPECT_NE(first, sandbox_for({}));
}

/// A step whose GPUs are checked enters its sandbox minutes after it was made.
TEST_F(SandboxesOfSteps, sandbox_stays_open_while_a_process_that_has_not_started_holds_it) {
  const auto first = sandbox_for({});
  for (int i = 0; i < 100; ++i) sandbox_for({"/usr/bin/program-" + std::to_string(i)});
  EXPECT_GE(::fcntl(first->descriptor(), F_GETFD), 0);
}

}  // namespace
}  // namespace pipeline::test

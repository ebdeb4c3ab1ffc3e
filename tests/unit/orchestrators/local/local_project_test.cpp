// The files that `local_project_install_command` installs in a virtual environment.
#include <gtest/gtest.h>

#include "orchestrators/local/local_orchestrator.hpp"
#include "support/attempt_builder.hpp"
#include "support/run_task.hpp"

namespace pipeline::test {
namespace {

class LocalProject : public testing::Test {
 protected:
  LocalProject() {
    for (auto* builder : {&one_, &two_})
      builder->step.settings->docker.local_project_install_command = "true";
  }
  /// Looks again, as another run does.
  void begin_run() {
    orchestrators::OrchestratorOptions options;
    options.root = root_.path();
    options.state = root_.path() / "state";
    orchestrator_ = orchestrators::make_local_orchestrator(loop_, options);
  }
  std::string id(const AttemptBuilder& builder) {
    return run_task(loop_, orchestrator_->environment(builder.step)).id;
  }

  core::TemporaryFolder root_;
  asio::io_context loop_;
  std::unique_ptr<orchestrators::Orchestrator> orchestrator_;
  AttemptBuilder one_{program({"python", "own.py"})}, two_{program({"python", "own.py"})};
};

TEST_F(LocalProject, of_a_step_of_an_included_file_is_in_the_folder_of_that_file) {
  write(root_.path() / "a" / "own.py", "1");
  write(root_.path() / "b" / "own.py", "2");
  one_.step.code_root = root_.path() / "a";
  two_.step.code_root = root_.path() / "b";
  begin_run();
  const auto first = id(one_), second = id(two_);
  EXPECT_NE(first, second);
  write(root_.path() / "b" / "own.py", "3");
  begin_run();
  EXPECT_EQ(id(one_), first);
  EXPECT_NE(id(two_), second);
}

TEST_F(LocalProject, has_no_files_of_the_state_folder) {
  write(root_.path() / "own.py", "1");
  begin_run();
  const auto before = id(one_);
  write(root_.path() / "state" / "logs" / "run.log", "1");
  begin_run();
  EXPECT_EQ(id(one_), before);
  write(root_.path() / "own.py", "2");
  begin_run();
  EXPECT_NE(id(one_), before);
}

}  // namespace
}  // namespace pipeline::test

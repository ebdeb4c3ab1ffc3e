// Steps on Podman (scripts/testbed/podman): on an engine that sees this machine's files, and on one
// that does not, as in a virtual machine.
#include <cstdlib>

#include <gtest/gtest.h>

#include "docker/engine_api.hpp"
#include "orchestrators/docker/docker_orchestrator.hpp"
#include "support/attempt_builder.hpp"
#include "support/event_recorder.hpp"
#include "support/prepare_and_run.hpp"
#include "support/run_task.hpp"

namespace pipeline::test {
namespace {

class PodmanTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto socket = std::string("/run/") + GetParam() + "/podman.sock";
    if (!fs::exists(socket))
      GTEST_SKIP() << "there is no Podman service: scripts/testbed/podman up starts one";
    setenv("DOCKER_HOST", ("unix://" + socket).c_str(), 1);
    orchestrator = orchestrators::make_docker_orchestrator(
        loop, {.root = root.path(), .state = root.path() / ".pipe", .run_id = "podman"});
  }
  void TearDown() override { unsetenv("DOCKER_HOST"); }

  orchestrators::AttemptResult run(AttemptBuilder& step) {
    step.step.settings->docker.parent_image = "debian:bookworm-slim";
    step.step.settings->docker.skip_build = true;
    return run_task(loop, prepare_and_run(*orchestrator, step, events));
  }

  asio::io_context loop;
  core::TemporaryFolder root;
  std::unique_ptr<orchestrators::Orchestrator> orchestrator;
  EventRecorder events;
};

TEST_P(PodmanTest, step_has_its_code_and_inputs_and_its_outputs_arrive) {
  AttemptBuilder step(shell("cat main.py /pipe/inputs/x > /pipe/outputs/y; ls -A /pipe/scratch"));
  step.code("main.py", "code ").input("x", "x", "input").output("y", "y");
  const auto result = run(step);
  EXPECT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(step.written("y"), "code input");
  // The file by which pipe has found out whether the engine sees this machine's files is removed.
  EXPECT_EQ(step.log.out, "");
}

TEST_P(PodmanTest, missing_code_is_a_failure) {
  AttemptBuilder step(program({"sh", "main.sh"}));
  const auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_TRUE(fs::is_empty(step.folder.path() / "scratch"));
}

INSTANTIATE_TEST_SUITE_P(Podman, PodmanTest, testing::Values("pipe-podman", "pipe-podman-blind"),
                         [](const auto& engine) {
                           return std::string(engine.param).ends_with("blind") ? "blind" : "seeing";
                         });

}  // namespace
}  // namespace pipeline::test

// An engine that is restarted while steps run on it: its containers are ended with it, and no
// attempt that was ended so counts as a success.
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

constexpr const char* socket_file = "/run/pipe-restarted-engine/docker.sock";
constexpr const char* restart =
    "SECOND_ENGINE='restarted 1' " PIPELINE_SOURCE_DIR "/scripts/testbed/second-engine restart";

class RestartedEngine : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(socket_file))
      GTEST_SKIP()
          << "there is no second engine to restart: scripts/testbed/second-engine start starts one";
    setenv("DOCKER_HOST", (std::string("unix://") + socket_file).c_str(), 1);
  }
  orchestrators::AttemptResult run(AttemptBuilder& builder) {
    builder.step.settings->docker.parent_image = "debian:bookworm-slim";
    builder.step.settings->docker.skip_build = true;
    builder.step.settings->docker.network = "none";
    orchestrators::OrchestratorOptions options;
    options.root = options.state = builder.folder.path();
    options.run_id = builder.run_id;
    orchestrator_ = orchestrators::make_docker_orchestrator(loop_, options);
    Silent events;
    return run_task(loop_, prepare_and_run(*orchestrator_, builder, events));
  }

  asio::io_context loop_;
  std::unique_ptr<orchestrators::Orchestrator> orchestrator_;
};

TEST_F(RestartedEngine,
       ends_an_attempt_as_a_failure_of_the_infrastructure_though_the_step_exits_with_0) {
  AttemptBuilder builder(
      shell("trap 'echo bye; exit 0' TERM; echo ready; while true; do sleep 0.05; done"));
  builder.log.on_write = [is_done = false](const Log&) mutable {
    if (std::exchange(is_done, true)) return;
    EXPECT_EQ(std::system(restart), 0);
  };
  const auto first = run(builder);
  ASSERT_TRUE(first.failure);
  EXPECT_EQ(first.failure->kind, FailureKind::infrastructure) << first.failure->message;
  EXPECT_FALSE(first.exit_code);
  EXPECT_EQ(builder.log.out, "ready\nbye\n");

  AttemptBuilder again(shell("echo well"));
  again.run_id = builder.run_id;
  again.number = 2;
  EXPECT_FALSE(run(again).failure);
  EXPECT_EQ(again.log.out, "well\n");
}

TEST_F(RestartedEngine, is_reached_again_by_a_client_that_had_nothing_running_there) {
  docker::EngineApi engine(loop_, docker::find_endpoint());
  run_task(loop_, engine.system_info());
  ASSERT_EQ(std::system(restart), 0);
  EXPECT_TRUE(run_task(loop_, engine.inspect_image("debian:bookworm-slim")));
}

}  // namespace
}  // namespace pipeline::test

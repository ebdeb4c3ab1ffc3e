#include <gtest/gtest.h>

#include "orchestrators/local/local_orchestrator.hpp"
#include "support/attempt_builder.hpp"
#include "support/event_recorder.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators::local {
namespace {

/// A step that holds a GPU, on a machine whose nvidia-smi is a stand-in.
class LocalGpuPreflight : public testing::Test {
 protected:
  LocalGpuPreflight() {
    OrchestratorOptions options;
    options.root = options.state = root_.path();
    options.run_id = step.run_id;
    orchestrator_ = make_local_orchestrator(loop_, options);
    path("/usr/bin:/bin");
  }
  void path(const std::string& value) {
    step.step.settings->docker.runtime_environment["PATH"] = value;
  }
  void smi(const std::string& script) {
    test::write(root_.path() / "bin/nvidia-smi", "#!/bin/sh\n" + script);
    std::filesystem::permissions(root_.path() / "bin/nvidia-smi", std::filesystem::perms(0755));
    path((root_.path() / "bin").string() + ":/usr/bin:/bin");
  }
  AttemptResult run() {
    auto attempt = step.attempt();
    attempt.gpus.push_back({.uuid = "GPU-b", .index = 1});
    attempt.process = process;
    return test::run_task(loop_,
                          [](Orchestrator& orchestrator, const Attempt& one,
                             EventSink& events) -> async::Task<AttemptResult> {
                            co_await orchestrator.prepare(one.step, events, one.io.cancel);
                            co_return co_await orchestrator.run(one);
                          }(*orchestrator_, attempt, events_));
  }
  static std::string message(const AttemptResult& result) {
    return result.failure ? result.failure->message : "";
  }

  std::optional<NodeProcess> process;

  asio::io_context loop_;
  core::TemporaryFolder root_;
  test::EventRecorder events_;
  std::unique_ptr<Orchestrator> orchestrator_;
  test::AttemptBuilder step{test::shell("echo started")};
};

TEST_F(LocalGpuPreflight, shows_the_table_before_the_command) {
  smi("if [ \"$1\" = -L ]; then echo 'GPU 0: A (UUID: GPU-a)'; echo 'GPU 1: B (UUID: GPU-b)'; else "
      "echo the table; fi\n");
  const auto result = run();
  EXPECT_FALSE(result.failure) << message(result);
  EXPECT_EQ(step.log.out,
            "[preflight] the table\n[preflight] GPU 0: A (UUID: GPU-a)\n[preflight] GPU 1: B "
            "(UUID: GPU-b)\nstarted\n");
}

TEST_F(LocalGpuPreflight, shows_the_table_once_for_the_processes_of_a_node) {
  smi("echo 'GPU 1: B (UUID: GPU-b)'\n");
  NodeAddresses addresses{{"127.0.0.1"}, 29500};
  process = {.rank = 1, .ranks = 2, .local_rank = 1, .local_ranks = 2, .addresses = &addresses};
  auto result = run();
  EXPECT_FALSE(result.failure) << message(result);
  EXPECT_EQ(step.log.out, "started\n");
  smi("echo the table; exit 9\n");
  std::filesystem::remove_all(step.folder.path() / "scratch");  // each attempt has one of its own
  std::filesystem::create_directories(step.folder.path() / "scratch");
  EXPECT_NE(message(run()), "");
  EXPECT_EQ(step.log.out, "started\n[preflight] the table\n") << "a failure is shown by each";
}

TEST_F(LocalGpuPreflight, keeps_the_command_from_starting_without_a_driver) {
  smi("echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\"; "
      "exit 9\n");
  const auto result = run();
  EXPECT_EQ(message(result), "was not started: the NVIDIA driver does not run on this machine");
  EXPECT_EQ(result.failure->kind, FailureKind::not_started);
  EXPECT_EQ(step.log.out.find("started"), std::string::npos) << step.log.out;
}

TEST_F(LocalGpuPreflight, keeps_the_command_from_starting_without_its_gpu) {
  smi("echo 'GPU 0: A (UUID: GPU-a)'\n");
  EXPECT_EQ(message(run()),
            "was not started: this machine has no GPU-b any more, which was reserved for it");
  EXPECT_EQ(step.log.out.find("started"), std::string::npos) << step.log.out;
}

TEST_F(LocalGpuPreflight, fails_without_nvidia_smi_unless_it_is_off) {
  std::filesystem::create_directories(root_.path() / "few");
  std::filesystem::create_symlink(
      "/bin/sh", root_.path() / "few/sh");  // whether the machine has an nvidia-smi or not
  path((root_.path() / "few").string());
  EXPECT_EQ(
      message(run()),
      "was not started: there is no `nvidia-smi` on PATH, which comes with the NVIDIA driver");
  EXPECT_EQ(step.log.out, "");
  step.step.settings->resources.preflight = Preflight::off;
  std::filesystem::remove_all(step.folder.path() / "scratch");  // each attempt has one of its own
  std::filesystem::create_directories(step.folder.path() / "scratch");
  const auto result = run();
  EXPECT_FALSE(result.failure) << message(result);
  EXPECT_EQ(step.log.out, "started\n");
}

TEST_F(LocalGpuPreflight, can_be_stopped) {
  smi("echo waiting; exec sleep 600\n");
  asio::steady_timer soon(loop_, std::chrono::milliseconds(200));
  soon.async_wait([&](boost::system::error_code) { step.cancel.stop(core::StopLevel::immediate); });
  EXPECT_EQ(run().failure->kind, FailureKind::cancelled);
}

TEST_F(LocalGpuPreflight, a_program_that_finds_no_gpu_is_explained) {
  smi("echo 'GPU 1: B (UUID: GPU-b)'\n");
  step.step.command = test::shell("echo 'RuntimeError: No CUDA GPUs are available' >&2; exit 1");
  const auto result = run();
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->message, "ended with exit code 1");
  ASSERT_FALSE(result.failure->hints.empty());
  EXPECT_EQ(result.failure->hints[0], "the program sees no GPU although the step holds some");
}

}  // namespace
}  // namespace pipeline::orchestrators::local

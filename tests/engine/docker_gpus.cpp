// Containers with GPUs on a real engine that has GPUs or the test bed's stand-ins for them. The
// tests skip themselves if the engine has neither.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "async/joinable_task.hpp"
#include "core/identifier.hpp"
#include "orchestrators/containers/container_end.hpp"
#include "orchestrators/docker/container_run.hpp"
#include "orchestrators/docker/container_shell.hpp"
#include "orchestrators/docker/container_spec.hpp"
#include "orchestrators/docker/docker_orchestrator.hpp"
#include "orchestrators/docker/gpu_probe.hpp"
#include "orchestrators/preflight.hpp"
#include "support/attempt_builder.hpp"
#include "support/event_recorder.hpp"
#include "support/run_task.hpp"

namespace pipeline {
namespace {

using nlohmann::json;
using test::AttemptBuilder;

constexpr const char* plain_image = "debian:bookworm-slim";

class DockerGpus : public testing::Test {
 protected:
  void SetUp() override {
    info_ = test::run_task(loop_, engine_.system_info());
    if (!info_["Runtimes"].contains("nvidia"))
      GTEST_SKIP()
          << "the engine has no GPUs; scripts/test gives stand-ins to one that it has started";
    const auto* version = test::run_task(loop_, engine_.info());
    access_.emplace(*version, info_);
    orchestrators::OrchestratorOptions options;
    options.root = options.state = folder_.path();
    options.run_id = run_id_;
    orchestrator_ = orchestrators::make_docker_orchestrator(loop_, options);
    core::CancelSource never;
    inventory_ =
        test::run_task(loop_, orchestrators::docker_engine::probe_gpus(
                                  engine_, *access_, plain_image, {{"pipe.run", run_id_}}, never));
    ASSERT_FALSE(inventory_.unavailable) << inventory_.unavailable->reason;
    if (inventory_.devices.size() < 4) GTEST_SKIP() << "the engine has fewer than 4 GPUs";
  }

  const std::string& uuid(std::size_t i) const { return inventory_.devices.at(i).uuid; }
  std::vector<orchestrators::AssignedGpu> gpus(const std::vector<std::size_t>& indices) const {
    std::vector<orchestrators::AssignedGpu> held;
    for (const auto i : indices)
      held.push_back({.uuid = uuid(i), .index = static_cast<unsigned>(i)});
    return held;
  }
  /// Returns the information of an engine that gives GPUs by CDI, which this one does not have.
  json info_with_cdi() const {
    auto info = info_;
    info["Runtimes"].erase("nvidia");
    info["DiscoveredDevices"] = {{{"Source", "cdi"}, {"ID", "nvidia.com/gpu=none"}}};
    return info;
  }
  /// Returns an attempt of this run that holds the GPUs of these indices.
  orchestrators::Attempt attempt(AttemptBuilder& builder, const std::vector<std::size_t>& indices) {
    builder.step.settings->docker.parent_image = plain_image;
    builder.step.settings->docker.network = "none";
    builder.run_id = run_id_;
    auto result = builder.attempt();
    result.gpus = gpus(indices);
    return result;
  }
  orchestrators::AttemptResult run(AttemptBuilder& builder,
                                   const std::vector<std::size_t>& indices) {
    return test::run_task(loop_, prepare_and_run(builder, indices));
  }
  async::Task<orchestrators::AttemptResult> prepare_and_run(AttemptBuilder& builder,
                                                            std::vector<std::size_t> indices) {
    const auto one = attempt(builder, indices);
    co_await orchestrator_->prepare(builder.step, events_, builder.cancel);
    auto result = co_await orchestrator_->run(one);
    co_await orchestrator_->settle();
    co_return result;
  }
  /// Returns the UUIDs that the step has printed by `nvidia-smi -L`.
  std::vector<std::string> seen(const AttemptBuilder& builder) {
    std::string list;  // Without the preflight's lines.
    std::istringstream lines(builder.log.out);
    for (std::string line; std::getline(lines, line);)
      if (!line.starts_with("[preflight]")) list += line + "\n";
    return orchestrators::visible_gpus(list);
  }
  static std::string message(const orchestrators::AttemptResult& result) {
    return result.failure ? result.failure->message : "";
  }
  /// Runs a container with this body, and returns what it printed.
  std::string output(const std::string& name, json body) {
    return test::run_task(loop_,
                          [](docker::EngineApi& engine, std::string container,
                             json description) -> async::Task<std::string> {
                            std::string text;
                            const auto id =
                                co_await engine.create_container(container, std::move(description));
                            std::exception_ptr error;
                            try {
                              co_await engine.start_container(id);
                              co_await engine.wait_container(id);
                              const std::function<void(bool, std::string_view)> keep =
                                  [&](bool, std::string_view bytes) { text += bytes; };
                              co_await engine.follow_logs(id, keep);
                            } catch (...) {
                              error = std::current_exception();
                            }
                            co_await engine.remove_container(id);
                            if (error) std::rethrow_exception(error);
                            co_return text;
                          }(engine_, name, std::move(body)));
  }
  orchestrators::docker_engine::ContainerOptions container_options() {
    return {.image = plain_image,
            .root = folder_.path(),
            .home = "/",
            .user = "0:0",
            .owner = "test",
            .gpu_access = &*access_};
  }
  /// Puts a stand-in for nvidia-smi before that of the container on the PATH.
  void own_smi(AttemptBuilder& builder, const std::string& script) {
    builder.code("nvidia-smi", "#!/bin/sh\n" + script);
    test::fs::permissions(builder.folder.path() / "code/nvidia-smi", test::fs::perms(0755));
    builder.step.settings->docker.runtime_environment["PATH"] = "/pipe/code:/usr/bin:/bin";
  }
  std::size_t left() {
    std::vector<std::string> labels{"pipe.run=" + run_id_};
    return test::run_task(loop_, engine_.list_containers(labels)).size();
  }
  void TearDown() override {
    if (!orchestrator_) return;
    test::run_task(loop_, orchestrator_->settle());
    EXPECT_EQ(left(), 0U) << "containers are left";
  }

  asio::io_context loop_;
  core::TemporaryFolder folder_;
  test::EventRecorder events_;
  std::string run_id_ = core::make_run_id(std::chrono::duration_cast<std::chrono::milliseconds>(
                                              std::chrono::system_clock::now().time_since_epoch())
                                              .count(),
                                          std::random_device{}());
  docker::EngineApi engine_{loop_, docker::find_endpoint()};
  json info_;
  std::optional<docker::GpuAccess> access_;
  std::unique_ptr<orchestrators::Orchestrator> orchestrator_;
  gpu::Inventory inventory_;
};

TEST_F(DockerGpus, the_inventory_describes_each_gpu_of_the_engine) {
  for (const auto& device : inventory_.devices) {
    EXPECT_TRUE(device.uuid.starts_with("GPU-"));
    EXPECT_FALSE(device.model.empty());
    EXPECT_GT(device.memory, Bytes{1} << 30);
    EXPECT_GE(device.capability.major, 3U);
  }
  EXPECT_FALSE(inventory_.driver.empty());
  EXPECT_FALSE(inventory_.cuda.empty());
}

TEST_F(DockerGpus, a_step_sees_exactly_the_gpus_that_it_holds) {
  for (const std::vector<std::size_t>& own :
       {std::vector<std::size_t>{0}, {2}, {1, 3}, {0, 1, 2, 3}}) {
    AttemptBuilder step(test::shell("nvidia-smi -L"));
    const auto result = run(step, own);
    EXPECT_FALSE(result.failure) << message(result) << step.log.out;
    std::vector<std::string> expected;
    for (const auto i : own) expected.push_back(uuid(i));
    EXPECT_EQ(seen(step), expected);
    EXPECT_NE(step.log.out.find("[preflight]"), std::string::npos) << step.log.out;
  }
}

// The gate is the script that runs the preflight in a step's container before its command.
TEST_F(DockerGpus, a_command_list_and_a_shell_line_start_behind_the_gate) {
  AttemptBuilder list(test::program({"sh", "-c", "echo \"[$1]\"; exit 7", "x", "a  b"})),
      line(test::shell("echo '[a  b]'; exit 7"));
  for (auto* step : {&list, &line}) {
    const auto result = run(*step, {1});
    EXPECT_EQ(result.exit_code, 7);
    EXPECT_TRUE(step->log.out.ends_with("\n[a  b]\n")) << step->log.out;
  }
}

TEST_F(DockerGpus, a_missing_program_is_named_behind_the_gate_too) {
  AttemptBuilder step(test::program({"no-such-program"}));
  const auto result = run(step, {0});
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::not_started);
  EXPECT_EQ(message(result),
            "could not start: there is no program 'no-such-program' in the image " +
                std::string(plain_image));
}

TEST_F(DockerGpus, a_stop_reaches_the_command_behind_the_gate) {
  AttemptBuilder step(test::program(
      {"sh", "-c", "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done"}));
  step.log.on_write = [&](const test::Log& log) {
    if (log.out.ends_with("ready\n")) step.cancel.stop(core::StopLevel::graceful);
  };
  const auto result = run(step, {0});
  EXPECT_EQ(result.failure->kind, FailureKind::cancelled);
  EXPECT_TRUE(step.log.out.ends_with("ready\ncleaned\n")) << step.log.out;
}

TEST_F(DockerGpus, steps_side_by_side_see_gpus_of_their_own) {
  AttemptBuilder first(test::shell("nvidia-smi -L")), second(test::shell("nvidia-smi -L"));
  second.step.name = "second";
  int ended = 0;
  for (auto [step, own] : {std::pair(&first, std::vector<std::size_t>{0, 1}),
                           std::pair(&second, std::vector<std::size_t>{2, 3})})
    asio::co_spawn(loop_, prepare_and_run(*step, own),
                   [&](std::exception_ptr error, orchestrators::AttemptResult result) {
                     EXPECT_FALSE(error);
                     EXPECT_FALSE(result.failure) << message(result);
                     ++ended;
                   });
  loop_.restart();
  while (ended < 2 && loop_.run_one() > 0) {
  }
  EXPECT_EQ(seen(first), (std::vector{uuid(0), uuid(1)}));
  EXPECT_EQ(seen(second), (std::vector{uuid(2), uuid(3)}));
}

TEST_F(DockerGpus, a_step_without_gpus_sees_none_even_by_nvidias_runtime) {
  AttemptBuilder step(test::shell("nvidia-smi -L || echo none"));
  step.step.settings->docker.runtime_environment["NVIDIA_VISIBLE_DEVICES"] =
      "all";  // as a CUDA image's own environment says
  const auto result = run(step, {});
  EXPECT_FALSE(result.failure) << message(result);
  EXPECT_TRUE(step.log.out.ends_with("none\n")) << step.log.out;

  auto body = orchestrators::docker_engine::container_body(attempt(step, {}), container_options());
  body["HostConfig"]["Runtime"] = "nvidia";  // as an engine does whose default runtime is NVIDIA's
  const auto withheld = output("pipe-" + run_id_ + "-withheld", body);
  EXPECT_NE(withheld.find("none\n"), std::string::npos) << withheld;  // stderr may arrive last
  EXPECT_EQ(orchestrators::visible_gpus(withheld).size(), 0U);
  for (auto& variable : body["Env"])
    if (variable == "NVIDIA_VISIBLE_DEVICES=void") variable = "NVIDIA_VISIBLE_DEVICES=all";
  EXPECT_EQ(orchestrators::visible_gpus(output("pipe-" + run_id_ + "-all", body)).size(),
            inventory_.devices.size())
      << "without `void`, the container sees all GPUs";
}

TEST_F(DockerGpus, an_engine_without_device_requests_gives_gpus_by_the_runtime) {
  access_->try_next(docker::GpuMethod::device_request, "could not select device driver");
  ASSERT_EQ(access_->methods().back(), docker::GpuMethod::runtime);
  while (access_->methods().front() != docker::GpuMethod::runtime)
    access_->try_next(access_->methods().front(), "could not select device driver");
  AttemptBuilder step(test::shell("nvidia-smi -L"));
  EXPECT_EQ(orchestrators::visible_gpus(output("pipe-" + run_id_ + "-runtime",
                                               orchestrators::docker_engine::container_body(
                                                   attempt(step, {3, 1}), container_options())))
                .size(),
            2U);
}

TEST_F(DockerGpus, if_the_engine_lacks_one_way_to_give_gpus_the_next_is_tried) {
  const auto* version = test::run_task(loop_, engine_.info());
  if (info_.contains("DiscoveredDevices")) GTEST_SKIP() << "this engine has CDI";
  docker::GpuAccess access(*version, info_with_cdi());
  ASSERT_EQ(access.methods().front(), docker::GpuMethod::cdi);
  AttemptBuilder step(test::shell("nvidia-smi -L"));
  auto where = container_options();
  where.gpu_access = &access;
  orchestrators::Removals removals;
  const auto one = attempt(step, {2});
  const orchestrators::docker_engine::RunContext context{engine_, one, plain_image, removals};
  const auto result =
      test::run_task(loop_, orchestrators::docker_engine::run_container(context, where));
  test::run_task(loop_, removals.settle());
  EXPECT_FALSE(result.failure) << message(result);
  EXPECT_EQ(seen(step), std::vector{uuid(2)});
  EXPECT_EQ(access.methods().front(), docker::GpuMethod::device_request);
}

TEST_F(DockerGpus, a_shell_too_tries_the_next_way_to_get_gpus) {
  const auto* version = test::run_task(loop_, engine_.info());
  if (info_.contains("DiscoveredDevices")) GTEST_SKIP() << "this engine has CDI";
  docker::GpuAccess access(*version, info_with_cdi());
  auto where = container_options();
  where.gpu_access = &access;
  AttemptBuilder step(test::shell("true"));
  auto one = attempt(step, {2});
  one.shell = {.words = {"sh", "-c", "nvidia-smi -L | grep -q " + uuid(2)}};
  const auto result = test::run_task(
      loop_, orchestrators::docker_engine::run_shell(engine_, one, where, plain_image));
  EXPECT_FALSE(result.failure) << message(result);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(access.methods().front(), docker::GpuMethod::device_request);
}

TEST_F(DockerGpus, an_unknown_gpu_is_explained) {
  AttemptBuilder step(test::program({"true"}));
  auto one = attempt(step, {0});
  one.gpus[0].uuid = "GPU-ffffffff-0000-4000-8000-000000000000";
  test::run_task(loop_, [&]() -> async::Task<> {
    co_await orchestrator_->prepare(step.step, events_, step.cancel);
  }());
  const auto result = test::run_task(loop_, orchestrator_->run(one));
  test::run_task(loop_, orchestrator_->settle());
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(
      message(result),
      "could not start: the engine's machine has no GPU GPU-ffffffff-0000-4000-8000-000000000000");
  EXPECT_FALSE(result.failure->hints.empty());
}

TEST_F(DockerGpus, an_image_that_needs_a_newer_driver_is_explained) {
  AttemptBuilder step(test::program({"echo", "started"}));
  step.step.settings->docker.runtime_environment["NVIDIA_REQUIRE_CUDA"] = "cuda>=99.0";
  auto result = run(step, {0});
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(message(result),
            "could not start: the driver is too old for the image: it needs CUDA >=99.0");
  step.number = 2;
  step.step.settings->docker.runtime_environment["NVIDIA_DISABLE_REQUIRE"] = "1";
  result = run(step, {0});
  EXPECT_FALSE(result.failure) << message(result);
}

TEST_F(DockerGpus, refusals_of_the_engine_to_give_gpus_are_explained) {
  const auto refused = [&](const json& request, const char* runtime) -> std::string {
    AttemptBuilder step(test::program({"true"}));
    auto body =
        orchestrators::docker_engine::container_body(attempt(step, {}), container_options());
    if (!request.is_null()) body["HostConfig"]["DeviceRequests"] = json::array({request});
    if (runtime) body["HostConfig"]["Runtime"] = runtime;
    try {
      output("pipe-" + run_id_ + "-refused", body);
    } catch (const docker::EngineError& error) {
      return orchestrators::containers::start_failure(error, attempt(step, {}), plain_image)
          .message;
    }
    return "not refused";
  };
  EXPECT_EQ(refused(json::parse(
                        R"({"Driver": "no-such-driver", "Capabilities": [["gpu"]], "Count": -1})"),
                    nullptr),
            "could not start: the engine has no device driver of the name that `gpus` gives");
  EXPECT_EQ(refused(json::parse(R"({"Capabilities": [["gpu"]], "Count": 1, "DeviceIDs": ["0"]})"),
                    nullptr),
            "could not start: a number of GPUs and a list of GPUs were asked for at once");
  EXPECT_EQ(refused(json::parse(R"({"Capabilities": [["gpu"]], "DeviceIDs": ["99"]})"), nullptr),
            "could not start: the engine's machine has no GPU 99");
}

TEST_F(DockerGpus, a_preflight_that_fails_keeps_the_command_from_starting) {
  struct Case {
    const char* name;
    std::string smi;
    const char* expected;
  };
  const std::vector<Case> cases{
      {"driver",
       "echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make "
       "sure ...\"; exit 9\n",
       "was not started: the NVIDIA driver does not run on this machine"},
      {"nothing", "echo 'No devices were found'; exit 6\n",
       "was not started: the NVIDIA driver runs but finds no GPU"},
      {"blind", "exit 0\n", "was not started: it sees no GPU, although"},
      {"others", "echo 'GPU 0: Other (UUID: GPU-other)'\n", "was not started: it does not see"},
      {"version", "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18\n",
       "was not started: the NVIDIA driver was updated while its old kernel module is still "
       "loaded"},
  };
  for (const auto& each : cases) {
    AttemptBuilder step(test::shell("echo started"));
    step.step.name = each.name;
    own_smi(step, each.smi);
    const auto result = run(step, {1});
    ASSERT_TRUE(result.failure) << each.name;
    EXPECT_TRUE(message(result).starts_with(each.expected)) << message(result);
    EXPECT_EQ(result.failure->kind, FailureKind::not_started);
    EXPECT_EQ(step.log.out.find("started"), std::string::npos) << step.log.out;
    EXPECT_FALSE(result.exit_code) << "the exit code of the gate is not the step's";
  }
}

TEST_F(DockerGpus, the_failure_of_a_preflight_says_that_the_container_has_no_nvidia_smi) {
  AttemptBuilder step(test::shell("echo started"));
  step.step.settings->docker.runtime_environment["NVIDIA_DRIVER_CAPABILITIES"] = "compute";
  auto result = run(step, {1});
  ASSERT_TRUE(result.failure) << step.log.out;
  EXPECT_EQ(
      message(result),
      "was not started: there is no `nvidia-smi` in its container, where NVIDIA's toolkit puts it");
  EXPECT_EQ(step.log.out.find("started\n"), std::string::npos);
  step.number = 2;
  step.step.settings->resources.preflight = Preflight::off;
  result = run(step, {1});
  EXPECT_FALSE(result.failure) << message(result);
  EXPECT_TRUE(step.log.out.ends_with("started\n")) << step.log.out;
}

TEST_F(DockerGpus, an_image_without_a_shell_has_its_preflight_in_a_container_of_its_own) {
  // The image has one static program, which is the step's command and a stand-in for nvidia-smi.
  // The program reads the list of its GPUs that only the test bed's stand-ins mount; real GPUs have
  // none.
  const auto image = "pipe-test-no-shell:" + run_id_;
  const auto source = (folder_.path() / "smi.c").string();
  test::write(source,
              "#include <stdio.h>\n#include <string.h>\nint main(int n, char** a) {\n"
              "  if (n > 1 && !strcmp(a[1], \"go\")) { puts(\"started\"); return 5; }\n"
              "  FILE* f = fopen(\"/etc/nvidia-stand-in/gpus.csv\", \"r\"); char index[9], "
              "uuid[99], rest[999];\n"
              "  while (f && fscanf(f, \"%8[^,], %98[^,], %998[^\\n] \", index, uuid, rest) == 3) "
              "printf(\"GPU %s: X (UUID: %s)\\n\", index, uuid);\n"
              "  return 0; }\n");
  const auto folder = (folder_.path() / "image").string();
  const auto make = "mkdir -p " + folder + "/own && cc -static -o " + folder + "/own/nvidia-smi " +
                    source + " && tar -C " + folder +
                    " -c own | docker import -c 'ENV PATH=/own' - " + image + " >/dev/null";
  ASSERT_EQ(std::system(make.c_str()), 0);
  AttemptBuilder step(test::program({"/own/nvidia-smi", "go"}));
  auto one = attempt(step, {1, 2});
  step.step.settings->docker.parent_image = image;
  step.step.settings->docker.skip_build = true;
  const auto result = test::run_task(loop_, [&]() -> async::Task<orchestrators::AttemptResult> {
    co_await orchestrator_->prepare(step.step, events_, step.cancel);
    auto ended = co_await orchestrator_->run(one);
    co_await orchestrator_->settle();
    co_return ended;
  }());
  EXPECT_EQ(result.exit_code, 5) << message(result);
  EXPECT_EQ(step.log.out, "[preflight] GPU 1: X (UUID: " + uuid(1) +
                              ")\n[preflight] GPU 2: X (UUID: " + uuid(2) + ")\nstarted\n");
  EXPECT_EQ(std::system(("docker image rm -f " + image + " >/dev/null").c_str()), 0);
}

TEST_F(DockerGpus, running_containers_say_which_gpus_they_occupy) {
  AttemptBuilder step(test::shell("echo ready; while :; do sleep 0.05; done"));
  std::vector<orchestrators::GpuHold> while_it_runs;
  bool asked = false;
  step.log.on_write = [&](const test::Log& log) {
    if (asked || !log.out.ends_with("ready\n")) return;
    asked = true;
    asio::co_spawn(
        loop_,
        [&]() -> async::Task<> {
          // The step's output may arrive before the engine reports the container as running.
          for (int look = 0; look < 100 && while_it_runs.empty(); ++look) {
            while_it_runs = co_await orchestrator_->gpus_in_use();
            std::erase_if(while_it_runs,
                          [&](const orchestrators::GpuHold& hold) { return hold.run != run_id_; });
            asio::steady_timer pause(loop_, std::chrono::milliseconds(20));
            co_await pause.async_wait(asio::use_awaitable);
          }
          step.cancel.stop(core::StopLevel::immediate);
        },
        asio::detached);
  };
  run(step, {0, 3});
  ASSERT_EQ(while_it_runs.size(), 2U);
  EXPECT_EQ(while_it_runs[0].uuid, uuid(0));
  EXPECT_EQ(while_it_runs[1].uuid, uuid(3));
  EXPECT_EQ(while_it_runs[0].step, "step");
  EXPECT_EQ(while_it_runs[0].holder, "container pipe-" + run_id_ + "-step-1");
  const auto afterwards = test::run_task(loop_, orchestrator_->gpus_in_use());
  EXPECT_TRUE(
      std::none_of(afterwards.begin(), afterwards.end(),
                   [&](const orchestrators::GpuHold& hold) { return hold.run == run_id_; }));
}

}  // namespace
}  // namespace pipeline

#include "engine/run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "core/diagnostic.hpp"
#include "gpu/lock_folder.hpp"
#include "unit/engine/run_fixture.hpp"

namespace pipeline::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RunWithGpus : public RunTest {
 protected:
  void SetUp() override {
    ::setenv("PIPE_NVML", NVML_STAND_IN, 1);
    ::setenv("PIPE_GPU_LOCKS", (folder.path() / "locks").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("PIPE_NVML");
    ::unsetenv("PIPE_GPU_LOCKS");
    ::unsetenv("PIPE_NVML_STAND_IN");
  }
  static StepSpec on_gpus(std::string name, unsigned count) {
    auto spec = step(std::move(name));
    spec.settings->resources.gpu_count = count;
    return spec;
  }
  static std::string uuid(int index) {
    return "GPU-00000000-0000-4000-8000-00000000000" + std::to_string(index);
  }
};

TEST_F(RunWithGpus, steps_hold_their_gpus_while_they_run_and_the_store_knows_which) {
  pipeline.steps = {on_gpus("a", 3), on_gpus("b", 2), step("c")};
  std::map<std::string, std::vector<orchestrators::AssignedGpu>> seen;
  for (const auto* name : {"a", "b", "c"})
    orchestrator.steps[name] = [&](const orchestrators::Attempt& attempt) {
      gpu::LockFolder locks;
      auto session = locks.try_enter();
      for (const auto& gpu : attempt.gpus)
        EXPECT_EQ(session->holder(gpu.uuid)->step, attempt.step.name);
      seen[attempt.step.name] = attempt.gpus;
      return writes(attempt, "x");
    };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  ASSERT_EQ(seen["a"].size(), 3u);
  EXPECT_EQ(seen["a"][2].uuid, uuid(2));
  EXPECT_EQ(seen["a"][2].index, 2u);
  EXPECT_EQ(seen["a"][2].model, "Tesla V100-SXM2-16GB");
  EXPECT_EQ(seen["b"].size(), 2u) << "step 'b' has waited for the others";
  EXPECT_EQ(seen["c"].size(), 0u);
  store::RunStore store(folder.path() / "state");
  ASSERT_EQ(store.attempts().list("run-1", "b").at(0).gpus.size(), 2u);
  EXPECT_EQ(store.attempts().list("run-1", "b")[0].gpus[1].uuid, seen["b"][1].uuid);
  gpu::LockFolder locks;
  EXPECT_FALSE(locks.try_enter()->is_held(uuid(0)));
  EXPECT_TRUE(locks.try_enter()->queue().empty());
}

TEST_F(RunWithGpus, a_retried_attempt_gets_gpus_again) {
  pipeline.steps = {on_gpus("a", 4)};
  pipeline.steps[0].retry->max_retries = 1;
  std::vector<std::size_t> held;
  orchestrator.steps["a"] = [&](const orchestrators::Attempt& attempt) {
    held.push_back(attempt.gpus.size());
    return attempt.number == 1 ? fails_with(1) : writes(attempt, "x");
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_THAT(held, ElementsAre(4u, 4u));
}

TEST_F(RunWithGpus, a_retried_attempt_prefers_other_gpus_than_those_that_failed) {
  pipeline.steps = {on_gpus("a", 1)};
  pipeline.steps[0].retry = RetrySettings{.max_retries = 4, .avoid_failed = true};
  std::vector<std::string> held;
  orchestrator.steps["a"] = [&](const orchestrators::Attempt& attempt) {
    held.push_back(attempt.gpus.at(0).uuid);
    return fails_with(1);
  };
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_THAT(held, ElementsAre(uuid(0), uuid(1), uuid(2), uuid(3), uuid(0))) << "the last resort";
}

TEST_F(RunWithGpus, gpus_of_a_dead_drivers_container_are_not_given_to_anyone) {
  pipeline.steps = {on_gpus("a", 4)};
  int asked = 0;
  orchestrator.in_use = [&] {
    std::vector<orchestrators::GpuHold> holds;
    if (++asked < 4)
      holds.push_back({uuid(3), "dead-run", "train", "container x"});
    else
      holds.push_back({uuid(0), "run-1", "a", "its own"});
    return holds;
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_GE(asked, 4);
  const auto waits = std::ranges::find_if(recorder.events, [](const Event& event) {
    return std::holds_alternative<event::StepWaits>(event);
  });
  ASSERT_NE(waits, recorder.events.end());
  EXPECT_EQ(std::get<event::StepWaits>(*waits).reason,
            "4 GPUs: GPU 3 is used by a container whose driver is dead");
}

TEST_F(RunWithGpus, a_gpu_that_is_lost_during_the_run_is_given_to_no_further_attempt) {
  const auto gpus = [&](bool is_lost) {
    nlohmann::json all;
    all["gpus"] = {{{"uuid", "GPU-1"}}, {{"uuid", "GPU-2"}}};
    if (is_lost) all["gpus"][0]["lost"] = true;
    core::write_file_atomically(folder.path() / "gpus.json", all.dump());
  };
  gpus(false);
  ::setenv("PIPE_NVML_STAND_IN", (folder.path() / "gpus.json").c_str(), 1);
  pipeline.steps = {on_gpus("a", 1), on_gpus("both", 2)};
  pipeline.steps[1].after = {"a"};
  pipeline.steps[0].retry->max_retries = 1;
  std::vector<std::string> held;
  orchestrator.steps["a"] = [&](const orchestrators::Attempt& attempt) {
    held.push_back(attempt.gpus.at(0).uuid);
    gpus(true);
    return attempt.number == 1 ? fails_with(1) : writes(attempt, "x");
  };
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_EQ(recorder.end_of("both").failure->message,
            "GPU 0 can no longer be used, and the step asks for 2 GPUs");
  EXPECT_THAT(held, ElementsAre("GPU-1", "GPU-2"));
}

TEST_F(RunWithGpus, only_free_gpus_of_another_machine_cannot_be_asked_for) {
  orchestrator.gpus_elsewhere.emplace().devices.emplace_back().uuid = "GPU-elsewhere";
  pipeline.steps = {on_gpus("a", 1)};
  pipeline.steps[0].settings->resources.auto_select_gpus = true;
  EXPECT_THROW(run(), core::InputError);
}

TEST_F(RunWithGpus, a_request_that_can_never_be_met_keeps_the_run_from_starting) {
  pipeline.steps = {step("before"), on_gpus("a", 5)};
  EXPECT_THROW(run(), core::InputError);
  EXPECT_TRUE(orchestrator.order.empty());
  EXPECT_TRUE(recorder.events.empty());
}

TEST_F(RunWithGpus, an_orchestrator_that_chooses_gpus_itself_takes_no_names_of_devices) {
  orchestrator.chooses_gpus_itself = true;
  pipeline.steps = {step("a")};
  pipeline.steps[0].settings->resources.devices = nlohmann::json::array({3, 1});
  try {
    run();
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("step 'a' names its GPUs, and the orchestrator fake chooses them itself"));
    EXPECT_THAT(error.what(), HasSubstr("`gpu_count: 2`"));
  }
}

TEST_F(RunWithGpus, a_cluster_gives_no_step_all_gpus_of_a_machine) {
  FakeOrchestrator cluster("cluster", false);
  cluster.chooses_gpus_itself = true;
  places.emplace(cluster);
  pipeline.steps = {step("a")};
  pipeline.steps[0].settings->resources.devices = -1;
  try {
    run();
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("step 'a' asks for all GPUs of its machine, and the "
                                        "orchestrator cluster gives GPUs by number"));
  }
  pipeline.steps[0].settings->resources.accelerator = Accelerator::automatic;
  EXPECT_EQ(run().status, RunStatus::succeeded) << "the step runs without GPUs";
}

TEST_F(RunWithGpus, gpus_of_another_machine_are_not_mixed_with_those_of_this_one) {
  gpu::Device device;
  device.uuid = "GPU-elsewhere";
  orchestrator.gpus_elsewhere.emplace().devices.push_back(device);
  pipeline.steps = {on_gpus("a", 1)};
  orchestrator.steps["a"] = [&](const orchestrators::Attempt& attempt) {
    EXPECT_EQ(attempt.gpus.at(0).uuid, "GPU-elsewhere");
    gpu::LockFolder locks;
    EXPECT_FALSE(locks.try_enter()->is_held(uuid(0)));
    return writes(attempt, "x");
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  pipeline.steps = {on_gpus("b", 2)};
  EXPECT_THROW(run(), core::InputError) << "the four GPUs of this machine do not count";
}

TEST_F(RunWithGpus, gpus_of_a_step_are_on_one_of_several_machines) {
  auto& inventory = orchestrator.gpus_elsewhere.emplace();
  inventory.machines = {"unix", "ssh://desk"};
  auto& devices = inventory.devices;
  for (const auto& [uuid, machine, index] :
       {std::tuple("GPU-x", 0U, 0U), std::tuple("GPU-b", 1U, 0U), std::tuple("GPU-a", 1U, 1U)}) {
    auto& device = devices.emplace_back();
    device.uuid = uuid;
    device.machine = machine;
    device.index = index;
  }
  pipeline.steps = {on_gpus("a", 2)};
  orchestrator.steps["a"] = [&](const orchestrators::Attempt& attempt) {
    EXPECT_EQ(attempt.gpus.at(0).uuid + attempt.gpus.at(1).uuid, "GPU-bGPU-a");
    return writes(attempt, "x");
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  pipeline.steps = {on_gpus("b", 3)};
  try {
    run();
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("step 'b' asks for 3 GPUs, and no machine has so many"));
    EXPECT_THAT(error.what(), HasSubstr("unix has 1, ssh://desk has 2 of them"));
  }
}

TEST_F(RunWithGpus, all_gpus_of_several_machines_are_too_few_for_more_nodes) {
  auto& inventory = orchestrator.gpus_elsewhere.emplace();
  inventory.machines = {"unix", "ssh://desk"};
  for (const unsigned machine : {0U, 1U}) {
    auto& device = inventory.devices.emplace_back();
    device.uuid = "GPU-" + std::to_string(machine);
    device.machine = machine;
  }
  pipeline.steps = {step("a")};
  pipeline.steps[0].nodes = {.count = 3};
  pipeline.steps[0].settings->resources.gpus = "all";
  try {
    run();
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("step 'a' asks for 1 GPU on each of 3 nodes, and the "
                                        "machines have them for 2"));
  }
}

TEST_F(RunWithGpus, gpus_are_given_back_as_soon_as_nothing_of_the_step_runs) {
  pipeline.steps = {on_gpus("a", 1)};
  std::vector<bool> held;
  const auto look = [&] { held.push_back(gpu::LockFolder().try_enter()->is_held(uuid(0))); };
  orchestrator.steps["a"] = [&](const orchestrators::Attempt&) {
    look();
    return fails_with(1);
  };
  when_explained = look;  // what is made of an attempt comes after it
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_THAT(held, ElementsAre(true, false));
}

TEST_F(RunWithGpus, another_number_of_gpus_is_another_key_and_other_devices_are_not) {
  pipeline.steps = {on_gpus("a", 1)};
  EXPECT_EQ(run().succeeded, 1u);
  EXPECT_EQ(run().cached, 1u);
  pipeline.steps[0].settings->resources.gpu_count.reset();
  pipeline.steps[0].settings->resources.devices = nlohmann::json::array({3});
  EXPECT_EQ(run().cached, 1u) << "the key has the number of GPUs, not their devices";
  pipeline.steps = {on_gpus("a", 2)};
  EXPECT_EQ(run().succeeded, 1u);
}

}  // namespace
}  // namespace pipeline::engine

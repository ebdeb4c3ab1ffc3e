#include "gpu/step_checks.hpp"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/pipeline_file.hpp"

namespace pipeline::gpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Returns texts such as `warning step 'a': ...` for a file with these steps.
std::vector<std::string> findings(const std::string& steps, const StepCheckContext& context) {
  const auto pipeline =
      spec::parse("name: x\nsettings: {docker: {parent_image: python:3.11-slim}}\nsteps:\n" + steps,
                  "pipeline.yaml");
  std::vector<const StepSpec*> steps_read;
  for (const auto& step : pipeline.steps) steps_read.push_back(&step);
  std::vector<std::string> texts;
  for (const auto& each : check_steps(steps_read, context))
    texts.push_back((each.severity == core::Severity::error ? "error " : "warning ") +
                    each.message);
  return texts;
}
const std::string gpu_step = ": {command: a, settings: {resources: {gpu_count: 1}}}\n";

TEST(StepChecks, steps_with_the_same_warning_are_reported_together) {
  EXPECT_THAT(
      findings("  a" + gpu_step + "  b" + gpu_step + "  c: {command: a}\n", {}),
      ElementsAre(HasSubstr("warning steps 'a', 'b': the image python:3.11-slim has no CUDA")));
  std::string many;
  for (int i = 0; i < 8; ++i) many += "  s" + std::to_string(i) + gpu_step;
  EXPECT_THAT(findings(many, {}),
              ElementsAre(HasSubstr("steps 's0', 's1', 's2', 's3', 's4' and 3 others: ")));
}

TEST(StepChecks, steps_without_gpus_are_left_alone) {
  EXPECT_THAT(findings("  a: {command: a}\n", {}), IsEmpty());
}

TEST(StepChecks, of_local_steps_do_not_concern_an_image) {
  StepCheckContext local;
  local.in_images = false;
  EXPECT_THAT(findings("  a" + gpu_step, local), IsEmpty());
}

TEST(StepChecks, the_engines_configuration_of_the_image_is_used) {
  StepCheckContext engine;
  engine.image_config = [](const std::string&) {
    return ImageConfig{{{"CUDA_VERSION", "12.2.2"}}, {}};
  };
  EXPECT_THAT(findings("  a" + gpu_step, engine), IsEmpty());
  engine.gpus = [](const settings::GpuRequest&) {
    return GpuHost{Version::parse("470.57.02"), {}, "", {{8, 0}}};
  };
  EXPECT_THAT(findings("  a" + gpu_step, engine),
              ElementsAre(HasSubstr("error step 'a': the image python:3.11-slim has CUDA 12.2.2, "
                                    "which needs driver 525.60.13")));
}

TEST(StepChecks, a_step_that_allows_an_older_driver_is_told_apart_from_one_with_equal_settings) {
  StepCheckContext engine;
  engine.image_config = [](const std::string&) {
    return ImageConfig{{{"CUDA_VERSION", "12.2.2"}, {"NVIDIA_REQUIRE_CUDA", "cuda>=99"}}, {}};
  };
  engine.gpus = [](const settings::GpuRequest&) {
    return GpuHost{Version::parse("535.183.01"), Version::parse("12.2"), "", {{8, 0}}};
  };
  const std::string strict = "  a" + gpu_step;
  const std::string allows =
      "  b: {command: a, environment: {NVIDIA_DISABLE_REQUIRE: \"1\"}, settings: {resources: "
      "{gpu_count: 1}}}\n";
  EXPECT_THAT(findings(allows, engine), IsEmpty());
  EXPECT_THAT(findings(strict + allows, engine),
              ElementsAre(HasSubstr("error step 'a': the image")));
  EXPECT_THAT(findings(allows + strict, engine),
              ElementsAre(HasSubstr("error step 'a': the image")));
}

TEST(StepChecks, an_instance_type_determines_the_gpus) {
  const std::string step =
      "  a: {command: a, settings: {docker: {requirements: [torch==2.0.0]}, resources: {gpu_count: "
      "1, instance_type: p5.48xlarge}}}\n";
  EXPECT_THAT(findings(step, {}),
              ElementsAre(HasSubstr("error step 'a': `torch==2.0.0` (CUDA 11.7) has no code for "
                                    "the machine's GPUs of compute capability 9.0")));
}

TEST(StepChecks, a_host_that_does_not_satisfy_is_refused) {
  StepCheckContext here;
  here.attributes = HostAttributes{{"ecs.instance-type", "g5.xlarge"}};
  EXPECT_THAT(findings("  a: {command: a, settings: {resources: {placement_constraints: "
                       "[\"attribute:ecs.instance-type == p2.xlarge\"]}}}\n",
                       here),
              ElementsAre("error step 'a': the constraint `attribute:ecs.instance-type == "
                          "p2.xlarge` is not satisfied here: "
                          "ecs.instance-type is 'g5.xlarge' here"));
  EXPECT_THAT(
      findings("  a: {command: a, settings: {resources: {instance_type: p2.xlarge}}}\n", here),
      ElementsAre(HasSubstr("this machine is a g5.xlarge")));
  EXPECT_THAT(
      findings("  a: {command: a, settings: {resources: {instance_type: g5.xlarge}}}\n", here),
      IsEmpty());
  EXPECT_THAT(
      findings("  a: {command: a, settings: {resources: {placement_constraints: [\"attribute:x "
               "exists\"]}}}\n",
               {}),
      IsEmpty())
      << "no host has been chosen yet";
}

TEST(StepChecks, auto_without_gpus_needs_no_cuda) {
  StepCheckContext none;
  none.gpus = [](const settings::GpuRequest&) { return GpuHost{}; };
  EXPECT_THAT(
      findings("  a: {command: a, settings: {resources: {accelerator: auto, devices: 1}}}\n", none),
      IsEmpty());
}

TEST(StepChecks, only_gpus_that_a_step_may_get_are_checked) {
  Inventory inventory;
  inventory.driver = "535.183.01";
  inventory.cuda = "12.2";
  for (const auto& [model, capability] :
       {std::pair{"Tesla V100-SXM2-16GB", settings::ComputeCapability{7, 0}},
        std::pair{"NVIDIA H100 80GB HBM3", settings::ComputeCapability{9, 0}}}) {
    Device device;
    device.index = static_cast<unsigned>(inventory.devices.size());
    device.uuid = "GPU-" + std::to_string(device.index);
    device.model = model;
    device.capability = capability;
    inventory.devices.push_back(device);
  }
  const auto capabilities = [&](const std::function<void(ResourceSettings&)>& set) {
    ResourceSettings resources;
    set(resources);
    std::string text;
    for (const auto& each : host_for(settings::gpu_request(resources), inventory).capabilities)
      text += each.text() + " ";
    return text;
  };
  EXPECT_EQ(capabilities([](auto& r) { r.gpu_count = 1; }), "7.0 9.0 ");
  EXPECT_EQ(capabilities([](auto& r) { r.gpu_count = 1, r.gpu_class = "H100"; }), "9.0 ");
  EXPECT_EQ(capabilities([](auto& r) { r.gpu_count = 1, r.compute_capability = "8.0"; }), "9.0 ");
  EXPECT_EQ(capabilities([](auto& r) { r.devices = 1; }), "7.0 ");
  EXPECT_EQ(capabilities([](auto& r) { r.gpus = "device=1"; }), "9.0 ");
  EXPECT_EQ(capabilities([](auto& r) { r.gpus = "GPU-0"; }), "7.0 ");
  const auto host = host_for({}, inventory);
  EXPECT_EQ(host.driver->text(), "535.183.01");
  EXPECT_EQ(host.cuda->text(), "12.2");
}

}  // namespace
}  // namespace pipeline::gpu

// One request for GPUs of every way to write it: PyTorch Lightning's table, docker's --gpus,
// ZenML's gpu_count, and what contradicts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "settings/accelerator.hpp"
#include "settings/settings.hpp"

namespace pipeline::settings {
namespace {

using nlohmann::json;
using Selection = GpuRequest::Selection;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Returns the request as `none`, `any 2`, `first 3`, `all` or devices with commas, or the error.
std::string outcome(const ResourceSettings& resources) {
  std::vector<GpuProblem> problems;
  const GpuRequest request = gpu_request(resources, problems);
  if (!problems.empty()) return "error: " + problems.front().message;
  std::string text;
  switch (request.selection) {
    case Selection::none: text = "none"; break;
    case Selection::count: text = "any " + std::to_string(request.count); break;
    case Selection::first: text = "first " + std::to_string(request.count); break;
    case Selection::all: text = "all"; break;
    case Selection::devices:
      for (const auto& device : request.devices) text += (text.empty() ? "" : ",") + device.text();
  }
  if (request.auto_select) text += " unoccupied";
  if (request.if_present) text += " if present";
  return text;
}

ResourceSettings with_devices(json devices,
                              std::optional<Accelerator> accelerator = Accelerator::gpu) {
  ResourceSettings resources;
  resources.devices = std::move(devices);
  resources.accelerator = accelerator;
  return resources;
}
ResourceSettings with_gpus(std::string gpus) {
  ResourceSettings resources;
  resources.gpus = std::move(gpus);
  return resources;
}
GpuRequest request_of(const std::string& gpus) { return gpu_request(with_gpus(gpus)); }

TEST(Accelerator, each_row_of_lightnings_table_holds) {
  const std::vector<std::pair<json, std::string>> rows{
      {3, "first 3"},
      {-1, "all"},
      {json::array({0}), "0"},
      {json::array({1, 3}), "1,3"},
      {"3", "first 3"},
      {"1, 3", "1,3"},
      {"-1", "all"},
      {"0, 1", "0,1"},
      {json::array({0, 1}), "0,1"},
      {1, "first 1"},
      {"0,", "0"},
      {"3,", "3"},
      {" 2 ", "first 2"},
      {"1,,3", "1,3"},
      {"auto", "all"},
      {json::array({"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"}),
       "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"},
      {"GPU-8932f937", "GPU-8932f937"},
      {json::array({"0:1", "MIG-1a2b"}), "0:1,MIG-1a2b"},
  };
  for (const auto& [devices, expected] : rows) {
    EXPECT_EQ(outcome(with_devices(devices)), expected) << devices;
    EXPECT_EQ(outcome(with_devices(devices, std::nullopt)), expected) << devices;
    EXPECT_EQ(outcome(with_devices(devices, Accelerator::automatic)), expected + " if present")
        << devices;
  }
}

TEST(Accelerator, values_that_lightnings_parser_refuses_are_errors) {
  const std::vector<std::pair<json, std::string>> rows{
      {true, "not the boolean true"},
      {false, "not the boolean false"},
      {1.5, "not 1.5"},
      {-2, "not -2"},
      {"-2", "not -2"},
      {2000000, "not more than 1000000"},
      {"", "'devices' is empty"},
      {"  ", "'devices' is empty"},
      {",", "'devices' names no GPU"},
      {"1, x", "'x' in 'devices' is not a GPU"},
      {"1, ,3", "'' in 'devices' is not a GPU"},
      {"1, -1", "'-1' in 'devices' is not a GPU"},
      {"gpu0", "not 'gpu0'"},
      {"all", "not 'all'"},
      {json::array({-1}), "'-1' in 'devices' is not a GPU"},
      {json::array({0, "GPU-1a"}), "'devices' mixes numbers and texts"},
      {json::array({0, true}), "not the boolean true"},
      {json::array({0, 1.5}), "not 1.5"},
      {json::array({"0", "1"}), "the index \"0\" in the list 'devices' is a text"},
      {json::array({0, 1, 0}), "'devices' names GPU 0 twice"},
      {"1,1", "'devices' names GPU 1 twice"},
      {json::array({99999}), "'99999' in 'devices' is not a GPU"},
      {json::array({"GPU-xyz"}), "'GPU-xyz' in 'devices' is not a GPU"},
      // No GPU where one is asked for.
      {0, "'accelerator' is gpu, but 'devices' asks for no GPU"},
      {"0", "'accelerator' is gpu, but 'devices' asks for no GPU"},
      {json::array(), "'accelerator' is gpu, but 'devices' asks for no GPU"},
  };
  for (const auto& [devices, expected] : rows)
    EXPECT_THAT(outcome(with_devices(devices)), HasSubstr(expected)) << devices;
  for (const auto& none : {json(0), json("0"), json::array()})
    EXPECT_EQ(outcome(with_devices(none, std::nullopt)), "none") << none;
}

TEST(Accelerator, a_number_beyond_64_bits_with_a_sign_is_not_minus_one) {
  EXPECT_THAT(outcome(with_devices(18446744073709551615ULL)), HasSubstr("more than 1000000"));
  EXPECT_THAT(outcome(with_devices(9223372036854775808ULL)), HasSubstr("more than 1000000"));
}

TEST(Accelerator, alone_means_all_gpus_or_none) {
  ResourceSettings resources;
  EXPECT_EQ(outcome(resources), "none");
  resources.accelerator = Accelerator::gpu;
  EXPECT_EQ(outcome(resources), "all");
  resources.accelerator = Accelerator::automatic;
  EXPECT_EQ(outcome(resources), "all if present");
  resources.accelerator = Accelerator::cpu;
  EXPECT_EQ(outcome(resources), "none");
}

TEST(Accelerator, auto_selection_takes_a_number) {
  const auto selected = [](ResourceSettings resources) {
    resources.auto_select_gpus = true;
    return outcome(resources);
  };
  EXPECT_EQ(selected(with_devices(2)), "any 2 unoccupied");
  EXPECT_EQ(selected(with_devices(-1)), "all unoccupied");
  EXPECT_EQ(selected(with_gpus("count=2")), "any 2 unoccupied");
  ResourceSettings count;
  count.gpu_count = 4;
  EXPECT_EQ(selected(count), "any 4 unoccupied");
  EXPECT_THAT(selected(with_devices("1, 3")), HasSubstr("'devices' already names them"));
  EXPECT_THAT(selected(with_gpus("device=1")), HasSubstr("'gpus' already names them"));
  EXPECT_THAT(selected(with_devices(0, std::nullopt)), HasSubstr("asks for none"));
  ResourceSettings cpu;
  cpu.accelerator = Accelerator::cpu;
  EXPECT_THAT(selected(cpu), HasSubstr("'accelerator' is cpu"));
}

TEST(Accelerator, two_ways_at_once_are_an_error) {
  ResourceSettings both = with_devices(2, std::nullopt);
  both.gpu_count = 2;
  EXPECT_EQ(outcome(both), "error: 'gpu_count' and 'devices' both say which GPUs the step gets");
  both.devices = nullptr;
  both.gpus = "2";
  EXPECT_EQ(outcome(both), "error: 'gpu_count' and 'gpus' both say which GPUs the step gets");
  ResourceSettings cpu;
  cpu.accelerator = Accelerator::cpu;
  cpu.gpu_count = 1;
  EXPECT_EQ(outcome(cpu), "error: 'gpu_count' asks for GPUs, but 'accelerator' is cpu");
  cpu.gpu_count = 0;
  EXPECT_EQ(outcome(cpu), "none");
  EXPECT_THROW(gpu_request(both), core::InputError);
}

TEST(Accelerator, number_of_devices_is_lightnings_number_of_processes_on_the_cpu) {
  const auto on_cpu = [](const json& devices) {
    return outcome(with_devices(devices, Accelerator::cpu));
  };
  EXPECT_EQ(on_cpu(1), "none");
  EXPECT_EQ(on_cpu(8), "none");
  EXPECT_EQ(on_cpu("4"), "none");
  EXPECT_EQ(on_cpu("auto"), "none") << "Lightning's default";
  for (const json& gpus : {json(-1), json({0, 1}), json("1, 3"), json("-1")})
    EXPECT_EQ(on_cpu(gpus), "error: 'devices' asks for GPUs, but 'accelerator' is cpu") << gpus;
}

TEST(GpuOption, each_form_of_docker_is_read) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"all", "all"},
      {"2", "any 2"},
      {"+2", "any 2"},
      {"-1", "all"},
      {"0", "none"},
      {"count=2", "any 2"},
      {"count=all", "all"},
      {"count=-1", "all"},
      {"device=0", "0"},
      {"\"device=0,1\"", "0,1"},
      {"device=0,1", "0,1"},
      {"device=0, 1", "0,1"},
      {"device=0,1,capabilities=utility", "0,1"},
      {"capabilities=utility,device=2", "2"},
      {"device=GPU-8932f937,GPU-45cbf7b3", "GPU-8932f937,GPU-45cbf7b3"},
      {"\"device=GPU-8932f937,1\"", "GPU-8932f937,1"},
      {"device=MIG-GPU-1a2b/1/0", "MIG-GPU-1a2b/1/0"},
      {"device=0:0,0:1", "0:0,0:1"},
      {"GPU-8932f937", "GPU-8932f937"},
      {"MIG-8932f937", "MIG-8932f937"},
      {"0:1", "0:1"},
      {"driver=nvidia", "any 1"},
      {"capabilities=compute", "any 1"},
      {"all,capabilities=utility", "all"},
      {"all,\"capabilities=compute,utility\"", "all"},
      {"driver=nvidia,count=2,capabilities=compute", "any 2"},
      {"2,options=a=b", "any 2"},
  };
  for (const auto& [gpus, expected] : rows) EXPECT_EQ(outcome(with_gpus(gpus)), expected) << gpus;
}

TEST(GpuOption, driver_capabilities_and_options_are_kept) {
  const auto request =
      request_of("all,driver=nvidia,\"capabilities=gpu,compute,utility\",\"options=a=b,c=d\"");
  EXPECT_EQ(request.driver, "nvidia");
  EXPECT_THAT(request.capabilities, ElementsAre("compute", "utility"));
  EXPECT_EQ(request.options.at("a"), "b");
  EXPECT_THAT(request_of("all").capabilities, IsEmpty());
  EXPECT_THAT(request_of("all,driver=acme,capabilities=warp").capabilities, ElementsAre("warp"));
}

TEST(GpuOption, values_that_docker_refuses_are_errors) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"two", "not 'two'"},
      {"all,all", "gives the count twice"},
      {"2,count=3", "gives the count twice"},
      {"count=2,3", "gives the count twice"},
      {"count=1,count=2", "gives 'count' twice"},
      {"device=0,device=1", "gives 'device' twice"},
      {"device=0,count=1", "gives both devices and a count"},
      {"device=0,all", "gives both devices and a count"},
      {"device=", "is not a device"},
      {"device=all", "is not a device"},
      {"device=nvidia.com/gpu=0", "as the Container Device Interface does"},
      {"nvidia.com/gpu=0", "as the Container Device Interface does"},
      {"0,1", "gives the count twice"},
      {"device=0,0", "names device 0 twice"},
      {"\"device=0,x\"", "'x' in 'gpus' is not a device"},
      {"capabilities=cumpute", "is not a capability"},
      {"capabilities=compute,utility", "not 'utility'"},
      {"devices=0", "unknown key 'devices'"},
      {"\"device=0,1", "a quote that does not end"},
      {"device=\"0,1\"", "a quote within a field"},
      {"\"all\"x", "text after a closing quote: x"},
      {",", "an empty field"},
      {"count=1.5", "not '1.5'"},
      {"count=-2", "must not be -2"},
      {"+-1", "not '+-1'"},
      {"++1", "not '++1'"},
      {"99999999999999999999", "not '99999999999999999999'"},
      {"options=\"=b\"", "a quote within a field"},
      {"options==b", "has no name"},
  };
  for (const auto& [gpus, expected] : rows)
    EXPECT_THAT(outcome(with_gpus(gpus)), HasSubstr(expected)) << gpus;
}

TEST(GpuOption, likely_fixes_are_named) {
  const auto fix = [](const std::string& gpus) {
    std::vector<GpuProblem> problems;
    gpu_request(with_gpus(gpus), problems);
    return problems.empty() ? "" : problems.front().suggestion;
  };
  EXPECT_EQ(fix("alll"), "did you mean 'all'?");
  EXPECT_EQ(fix("devise=0"), "did you mean 'device'?");
  EXPECT_EQ(fix("0,1"), "did you mean `gpus: \"device=0,1\"`?");
  EXPECT_EQ(fix("2,3x"), "");
  EXPECT_EQ(fix("nvidia.com/gpu=all"), "did you mean `gpus: all`?");
  EXPECT_EQ(fix("none"), "did you mean `accelerator: cpu`?");
  EXPECT_EQ(fix("device=\"0,1\""), "did you mean `gpus: '\"device=0,1\"'`?");
  EXPECT_EQ(fix("capabilities=compute,utility"),
            "did you mean `gpus: '\"capabilities=compute,utility\"'`?");
  EXPECT_EQ(fix("all,utility"), "did you mean `gpus: 'all,\"capabilities=utility\"'`?");
  EXPECT_EQ(fix("utility"), "did you mean `gpus: 'all,\"capabilities=utility\"'`?");
  EXPECT_EQ(fix("count=utility"), "did you mean `gpus: 'all,\"capabilities=utility\"'`?");
  EXPECT_EQ(fix("2,compute"), "did you mean `gpus: '2,\"capabilities=compute\"'`?");
  EXPECT_EQ(fix("all,capabilities=utility,compute,video"),
            "did you mean `gpus: 'all,\"capabilities=utility,compute,video\"'`?");
  EXPECT_EQ(fix("count=4,capabilities=compute,utility"),
            "did you mean `gpus: 'count=4,\"capabilities=compute,utility\"'`?");
  EXPECT_EQ(fix("\"device=0,1\",capabilities=compute,utility"),
            "did you mean `gpus: '\"device=0,1\",\"capabilities=compute,utility\"'`?");
}

Settings with(const ResourceSettings& resources) { return {.docker = {}, .resources = resources}; }

TEST(Accelerator, a_steps_request_replaces_the_pipelines) {
  const auto merged = [](const ResourceSettings& pipeline, const ResourceSettings& step) {
    return outcome(merge(with(pipeline), with(step)).resources);
  };
  ResourceSettings count, cpu, chosen, gpu;
  count.gpu_count = 2;
  cpu.accelerator = Accelerator::cpu;
  chosen.auto_select_gpus = true;
  gpu.accelerator = Accelerator::gpu;
  EXPECT_EQ(merged(with_devices("1, 3"), count), "any 2");
  EXPECT_EQ(merged(count, with_gpus("device=0")), "0");
  EXPECT_EQ(merged(count, cpu), "none");
  EXPECT_EQ(merged(cpu, count), "any 2");
  EXPECT_EQ(merged(gpu, with_devices(0, std::nullopt)), "none");
  EXPECT_EQ(merged(gpu, count), "any 2");
  EXPECT_EQ(merged(chosen, count), "any 2 unoccupied");
  EXPECT_EQ(merged(chosen, with_devices(json::array({1}))), "1");
  EXPECT_EQ(merged(count, {}), "any 2");
  EXPECT_EQ(merged(count, gpu), "any 2");
  EXPECT_EQ(merged(with_devices(4, Accelerator::cpu), gpu), "all") << "4 is a number of processes";
  ResourceSettings zero;
  zero.gpu_count = 0;
  EXPECT_EQ(merged(zero, gpu), "all");
  EXPECT_THAT(merged(with_devices("1, 3"), chosen), HasSubstr("already names them"));
}

TEST(Accelerator, requirements_on_each_gpu_are_in_the_request) {
  ResourceSettings resources;
  resources.gpu_count = 1;
  resources.gpu_class = "A100";
  resources.gpu_memory = Bytes{1} << 30;
  resources.compute_capability = "8.6";
  resources.preflight = Preflight::off;
  const auto request = gpu_request(resources);
  EXPECT_EQ(request.model, "A100");
  EXPECT_EQ(request.min_memory, Bytes{1} << 30);
  EXPECT_EQ(request.min_capability, (ComputeCapability{8, 6}));
  EXPECT_FALSE(request.preflight);
  EXPECT_LT((ComputeCapability{8, 9}), (ComputeCapability{10, 0}));
}

}  // namespace
}  // namespace pipeline::settings

#include "gpu/choose.hpp"

#include <gmock/gmock.h>

#include "gpu/visible.hpp"

namespace pipeline::gpu {
namespace {

using testing::HasSubstr;

constexpr Bytes gib = Bytes{1} << 30;

Device device(unsigned index, std::string uuid, std::string model, Bytes memory,
              settings::ComputeCapability capability) {
  Device device;
  device.index = index, device.uuid = std::move(uuid), device.model = std::move(model),
  device.memory = memory, device.capability = capability;
  return device;
}

/// Two V100, an A100 that is divided, an H100 in exclusive mode, one that is lost, one in
/// prohibited mode.
Inventory machine() {
  Inventory inventory{.driver = "550.54.15", .cuda = "12.4"};
  auto& devices = inventory.devices;
  devices.push_back(device(0, "GPU-0aaa", "Tesla V100-SXM2-16GB", 16 * gib, {7, 0}));
  devices.push_back(device(1, "GPU-0abb", "Tesla V100-SXM2-16GB", 16 * gib, {7, 0}));
  devices.push_back(device(2, "GPU-2", "NVIDIA A100-SXM4-40GB", 40 * gib, {8, 0}));
  devices[2].mig = true;
  devices[2].slices = {{.uuid = "MIG-20", .index = 0, .profile = "1g.5gb", .memory = 5 * gib},
                       {.uuid = "MIG-21", .index = 1, .profile = "3g.20gb", .memory = 20 * gib}};
  devices.push_back(device(3, "GPU-3", "NVIDIA H100 80GB HBM3", 81'559ULL << 20, {9, 0}));
  devices[3].mode = ComputeMode::exclusive;
  devices.push_back(device(4, "", "", 0, {}));
  devices[4].trouble = "GPU is lost";
  devices.push_back(device(5, "GPU-5", "Tesla V100-SXM2-16GB", 16 * gib, {7, 0}));
  devices[5].mode = ComputeMode::prohibited;
  return inventory;
}

settings::GpuRequest count(unsigned number) {
  return {.selection = settings::GpuRequest::Selection::count, .count = number};
}
settings::GpuRequest first(unsigned number) {
  return {.selection = settings::GpuRequest::Selection::first, .count = number};
}
settings::GpuRequest every() { return {.selection = settings::GpuRequest::Selection::all}; }
settings::GpuRequest named(std::vector<std::string> names) {
  settings::GpuRequest request{.selection = settings::GpuRequest::Selection::devices};
  for (const auto& name : names) {
    auto parsed = settings::parse_gpu_device(name);
    request.devices.push_back(parsed ? *parsed : settings::GpuDevice{.uuid = name});
  }
  return request;
}
settings::GpuRequest with(settings::GpuRequest request, std::optional<std::string> model,
                          std::optional<Bytes> memory = {},
                          std::optional<settings::ComputeCapability> capability = {}) {
  request.model = std::move(model), request.min_memory = memory,
  request.min_capability = capability;
  return request;
}

struct Case {
  const char* name;
  settings::GpuRequest request;
  unsigned count;
  std::vector<std::string> candidates;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class GpuChoice : public testing::TestWithParam<Case> {};
TEST_P(GpuChoice, is) {
  auto result = demand_of(GetParam().request, machine());
  ASSERT_TRUE(std::holds_alternative<Demand>(result)) << std::get<Shortage>(result).message;
  EXPECT_EQ(std::get<Demand>(result).count, GetParam().count);
  EXPECT_EQ(std::get<Demand>(result).candidates, GetParam().candidates);
}
INSTANTIATE_TEST_SUITE_P(
    table, GpuChoice,
    testing::Values(
        Case{"none", {}, 0, {}}, Case{"any one", count(1), 1, {"GPU-0aaa", "GPU-0abb", "GPU-3"}},
        Case{"any three", count(3), 3, {"GPU-0aaa", "GPU-0abb", "GPU-3"}},
        Case{"all", every(), 3, {"GPU-0aaa", "GPU-0abb", "GPU-3"}},
        Case{"the first two", first(2), 2, {"GPU-0aaa", "GPU-0abb"}},
        Case{"by index", named({"1", "3"}), 2, {"GPU-0abb", "GPU-3"}},
        Case{"by UUID", named({"GPU-3"}), 1, {"GPU-3"}},
        Case{"by the beginning of a UUID", named({"GPU-0ab"}), 1, {"GPU-0abb"}},
        Case{"a slice by UUID", named({"MIG-21"}), 1, {"MIG-21"}},
        Case{"a slice by its place", named({"2:1"}), 1, {"MIG-21"}},
        Case{"a model", with(count(1), "V100"), 1, {"GPU-0aaa", "GPU-0abb"}},
        Case{"all of a model", with(every(), "V100"), 2, {"GPU-0aaa", "GPU-0abb"}},
        Case{"a profile", with(count(1), "3g.20gb"), 1, {"MIG-21"}},
        Case{"enough memory", with(count(1), {}, 40 * gib), 1, {"GPU-3"}},
        Case{"the size that the maker names", with(count(1), {}, 80 * gib), 1, {"GPU-3"}},
        Case{"a capability",
             with(count(1), {}, {}, settings::ComputeCapability{7, 5}),
             1,
             {"GPU-3"}},
        Case{"only slices are large enough and new enough",
             with(count(1), "A100", 20 * gib),
             1,
             {"MIG-21"}}),
    [](const auto& one) {
      std::string name = one.param.name;
      std::ranges::replace_if(
          name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
      return name;
    });

TEST(GpuUnits, of_several_machines_have_their_names) {
  auto inventory = machine();
  inventory.machines = {"unix", "ssh://desk"};
  inventory.devices[0].machine = 1;
  EXPECT_EQ(units_of(inventory).front().name(), "GPU 0 of ssh://desk");
  const auto shortage = std::get<Shortage>(demand_of(count(4), inventory));
  EXPECT_EQ(shortage.message, "asks for 4 GPUs, and the machines have 3");
  EXPECT_THAT(shortage.notes.front(), HasSubstr("ssh://desk has GPU 0: Tesla"));
}

struct Wrong {
  const char* name;
  settings::GpuRequest request;
  const char* code;
  const char* message;
  const char* note;
};
void PrintTo(const Wrong& one, std::ostream* out) { *out << one.name; }

class GpuShortage : public testing::TestWithParam<Wrong> {};
TEST_P(GpuShortage, is_explained) {
  auto result = demand_of(GetParam().request, machine());
  ASSERT_TRUE(std::holds_alternative<Shortage>(result));
  const auto& shortage = std::get<Shortage>(result);
  EXPECT_EQ(shortage.code, GetParam().code);
  EXPECT_EQ(shortage.message, GetParam().message);
  EXPECT_THAT(testing::PrintToString(shortage.notes) + shortage.suggestion,
              HasSubstr(GetParam().note));
  EXPECT_FALSE(shortage.of_machine);
}
INSTANTIATE_TEST_SUITE_P(
    table, GpuShortage,
    testing::Values(
        Wrong{"too_many", count(4), "too-many-gpus", "asks for 4 GPUs, and this machine has 3",
              "this machine has GPU 3: NVIDIA H100"},
        Wrong{"too_many_of_a_class", with(count(3), "V100"), "too-many-gpus",
              "asks for 3 GPUs of class 'V100', and this machine has 2", "GPU 0: Tesla"},
        Wrong{"first_too_many", first(7), "too-many-gpus",
              "asks for 7 GPUs, and this machine has 5", "GPU 4 cannot be used: GPU is lost"},
        Wrong{"no_such_index", named({"9"}), "gpu-unknown",
              "asks for GPU 9, which this machine does not have", "this machine has GPU 0: Tesla"},
        Wrong{"no_such_slice", named({"2:7"}), "gpu-unknown",
              "asks for MIG device 2:7, which this machine does not have", "MIG device 2:0"},
        Wrong{"slice_of_a_whole_gpu", named({"0:1"}), "gpu-unknown",
              "asks for MIG device 0:1, and GPU 0 is not divided by MIG",
              "name the GPU as a whole, as `0`"},
        Wrong{"slice_of_a_lost_gpu", named({"4:1"}), "gpu-unknown",
              "asks for MIG device 4:1, which cannot be used", "GPU is lost"},
        Wrong{"no_such_uuid_of_a_slice", named({"MIG-f00"}), "gpu-unknown",
              "asks for the MIG device with the UUID MIG-f00, which this machine does not have",
              "MIG-20"},
        Wrong{"ambiguous_slice", named({"MIG-2"}), "gpu-ambiguous",
              "asks for MIG-2, which is the beginning of more than one MIG device's UUID",
              "MIG-20, MIG-21"},
        Wrong{"divided_by_uuid", named({"GPU-2"}), "gpu-divided",
              "asks for the GPU with the UUID GPU-2, which is divided by MIG and cannot be used as "
              "a whole",
              "name a slice, as `2:0`"},
        Wrong{"no_such_uuid", named({"GPU-f00"}), "gpu-unknown",
              "asks for the GPU with the UUID GPU-f00, which this machine does not have",
              "GPU-0aaa"},
        Wrong{"lost", named({"4"}), "gpu-unknown", "asks for GPU 4, which cannot be used",
              "GPU is lost"},
        Wrong{"prohibited", named({"5"}), "gpu-unknown", "asks for GPU 5, which cannot be used",
              "nvidia-smi -i 5 -c DEFAULT"},
        Wrong{"divided", named({"2"}), "gpu-divided",
              "asks for GPU 2, which is divided by MIG and cannot be used as a whole",
              "name a slice, as `2:0`"},
        Wrong{"ambiguous", named({"GPU-0a"}), "gpu-ambiguous",
              "asks for GPU-0a, which is the beginning of more than one GPU's UUID",
              "GPU-0aaa, GPU-0abb"},
        Wrong{"twice", named({"0", "GPU-0aaa"}), "gpu-twice", "names GPU 0 twice, once as GPU-0aaa",
              "name it once"},
        Wrong{"class", with(count(1), "B200"), "no-matching-gpu",
              "asks for GPUs of class 'B200', and this machine has none", "this machine has GPU 0"},
        Wrong{"memory", with(count(1), {}, 100 * gib), "no-matching-gpu",
              "asks for GPUs with at least 100 GiB, and this machine has none", "H100"},
        Wrong{"named_but_too_small", with(named({"0"}), {}, 20 * gib), "no-matching-gpu",
              "asks for GPUs with at least 20 GiB, and names GPU 0, which does not match",
              "it is GPU 0: Tesla"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(GpuChoice, explains_which_gpus_a_number_of_devices_names) {
  for (const auto& request : {first(3), with(first(2), {}, 20 * gib)}) {
    const auto result = demand_of(request, machine());
    ASSERT_TRUE(std::holds_alternative<Shortage>(result));
    EXPECT_EQ(
        std::get<Shortage>(result).notes.front(),
        "`devices` is a number: it names the first " + std::to_string(request.count) + " GPUs");
  }
}

TEST(GpuChoiceElsewhere, names_the_machine_that_has_the_gpus) {
  Inventory inventory;
  inventory.owner = "the engine's machine";
  auto& device = inventory.devices.emplace_back();
  device.uuid = "GPU-1";
  auto result = demand_of(named({"9"}), inventory);
  ASSERT_TRUE(std::holds_alternative<Shortage>(result));
  const auto& shortage = std::get<Shortage>(result);
  EXPECT_EQ(shortage.message, "asks for GPU 9, which the engine's machine does not have");
  ASSERT_EQ(shortage.notes.size(), 1U);
  EXPECT_TRUE(shortage.notes[0].starts_with("the engine's machine has GPU 0: "));
}

TEST(GpuChoiceWithoutDriver, is_a_shortage_of_the_machine_with_the_reason) {
  Inventory inventory;
  inventory.unavailable = Unavailable{"this machine has no NVIDIA driver", {"install it"}};
  auto result = demand_of(count(1), inventory);
  ASSERT_TRUE(std::holds_alternative<Shortage>(result));
  EXPECT_TRUE(std::get<Shortage>(result).of_machine);
  EXPECT_EQ(std::get<Shortage>(result).message,
            "asks for GPUs, and this machine has no NVIDIA driver");
}

TEST(GpuChoiceWithoutDriver, is_empty_for_accelerator_auto) {
  Inventory inventory;
  inventory.unavailable = Unavailable{"this machine has no NVIDIA driver", {}};
  auto request = every();
  request.if_present = true;
  auto result = demand_of(request, inventory);
  ASSERT_TRUE(std::holds_alternative<Demand>(result));
  EXPECT_EQ(std::get<Demand>(result).count, 0u);
}

TEST(GpuChoiceOfSlices, is_made_where_there_is_nothing_else) {
  auto inventory = machine();
  inventory.devices = {inventory.devices[2]};
  const auto demand = std::get<Demand>(demand_of(count(1), inventory));
  EXPECT_EQ(demand.candidates, (std::vector<std::string>{"MIG-20", "MIG-21"}));
}

TEST(GpuChoiceOfVisible, begins_with_the_first_visible_gpu_and_reports_hidden_ones) {
  auto inventory = machine();
  remove_hidden("1,3", inventory);
  EXPECT_EQ(std::get<Demand>(demand_of(first(2), inventory)).candidates,
            (std::vector<std::string>{"GPU-0abb", "GPU-3"}));
  const auto hidden = std::get<Shortage>(demand_of(named({"0"}), inventory));
  EXPECT_EQ(hidden.message, "asks for GPU 0, which this machine does not have");
  EXPECT_EQ(hidden.notes.at(0), "CUDA_VISIBLE_DEVICES=1,3 hides 4 of this machine's 6 GPUs");
  remove_hidden("", inventory);
  const auto none = std::get<Shortage>(demand_of(count(1), inventory));
  EXPECT_EQ(
      none.message,
      "asks for GPUs, and CUDA_VISIBLE_DEVICES is empty, which hides all of this machine's 2 GPUs");
  EXPECT_TRUE(none.of_machine);
}

}  // namespace
}  // namespace pipeline::gpu

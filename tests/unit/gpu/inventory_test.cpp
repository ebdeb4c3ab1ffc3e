#include "gpu/inventory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "core/file.hpp"
#include "gpu/visible.hpp"

namespace pipeline::gpu {
namespace {

class GpuInventory : public testing::Test {
 protected:
  void SetUp() override { ::setenv("PIPE_NVML", NVML_STAND_IN, 1); }
  void TearDown() override {
    ::unsetenv("PIPE_NVML");
    ::unsetenv("PIPE_NVML_STAND_IN");
  }
  Inventory read(const std::string& text) {
    core::write_file_atomically(folder_.path() / "gpus.json", text);
    ::setenv("PIPE_NVML_STAND_IN", (folder_.path() / "gpus.json").c_str(), 1);
    return Machine().read();
  }
  core::TemporaryFolder folder_;
};

TEST_F(GpuInventory, has_all_that_the_driver_knows) {
  const auto inventory =
      read(R"({"driver": "550.54.15", "cuda": 12040, "gpus": [
    {"uuid": "GPU-a", "model": "NVIDIA H100 80GB HBM3", "memory_mib": 81559, "used_mib": 5, "reserved_mib": 610, "capability": [9, 0], "mode": 3,
     "processes": [{"pid": )" +
           std::to_string(::getpid()) + R"(, "memory_mib": 4}, {"pid": 2, "graphics": true}]}]})");
  ASSERT_FALSE(inventory.unavailable) << inventory.unavailable->reason;
  EXPECT_EQ(inventory.driver, "550.54.15");
  EXPECT_EQ(inventory.cuda, "12.4");
  ASSERT_EQ(inventory.devices.size(), 1u);
  const auto& device = inventory.devices[0];
  EXPECT_EQ(device.uuid, "GPU-a");
  EXPECT_EQ(device.model, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(device.memory, Bytes{81559} << 20);
  EXPECT_EQ(device.memory_used, Bytes{5} << 20);
  EXPECT_EQ(device.capability.text(), "9.0");
  EXPECT_EQ(device.mode, ComputeMode::exclusive);
  EXPECT_EQ(device.bus_id, "00000000:00:00.0");
  ASSERT_EQ(device.processes.size(), 2u);
  EXPECT_EQ(device.processes[0].pid, ::getpid());
  EXPECT_EQ(device.processes[0].memory, Bytes{4} << 20);
  EXPECT_FALSE(device.processes[0].name.empty());
  EXPECT_FALSE(device.processes[0].user.empty());
  EXPECT_TRUE(device.processes[1].graphics);
}

TEST_F(GpuInventory, has_the_use_of_a_gpu_at_this_moment) {
  const std::string text =
      R"({"gpus": [{"uuid": "GPU-a", "load": 40, "memory_mib": 100, "used_mib": 7, "reserved_mib": 60},
    {"uuid": "GPU-b", "mig": [{"uuid": "MIG-1", "memory_mib": 50, "used_mib": 3}]}]})";
  EXPECT_EQ(read(text).devices[0].load, 0.4);
  EXPECT_EQ(read(text).devices[1].load, std::nullopt);
  Machine machine;
  const auto whole = machine.load("GPU-a"), slice = machine.load("MIG-1");
  ASSERT_TRUE(whole && slice);
  EXPECT_EQ(whole->share, 0.4);
  EXPECT_EQ(whole->memory, Bytes{100} << 20);
  EXPECT_EQ(whole->memory_used, Bytes{7} << 20);
  EXPECT_EQ(slice->share, std::nullopt) << "the driver does not tell it of slices";
  EXPECT_EQ(slice->memory_used, Bytes{3} << 20);
  EXPECT_FALSE(machine.load("GPU-c"));
}

TEST_F(GpuInventory, has_the_slices_of_a_divided_gpu) {
  const auto inventory =
      read(R"({"gpus": [{"uuid": "GPU-a", "model": "NVIDIA A100-SXM4-40GB", "mig": [
    {"uuid": "MIG-1", "profile": "1g.5gb", "model": "NVIDIA A100-SXM4-40GB", "memory_mib": 4864},
    {"uuid": "MIG-2", "profile": "3g.20gb", "model": "NVIDIA A100-SXM4-40GB", "memory_mib": 19968}]}]})");
  ASSERT_EQ(inventory.devices.size(), 1u);
  EXPECT_TRUE(inventory.devices[0].mig);
  ASSERT_EQ(inventory.devices[0].slices.size(), 2u);
  EXPECT_EQ(inventory.devices[0].slices[1].uuid, "MIG-2");
  EXPECT_EQ(inventory.devices[0].slices[1].profile, "3g.20gb");
  EXPECT_EQ(inventory.devices[0].slices[1].index, 1u);
  EXPECT_EQ(inventory.devices[0].slices[1].memory, Bytes{19968} << 20);
}

TEST_F(GpuInventory, more_processes_than_the_first_buffer_holds_are_all_seen) {
  std::string processes;
  for (int i = 1; i <= 40; ++i)
    processes += (i > 1 ? "," : "") + ("{\"pid\": " + std::to_string(i) + "}");
  EXPECT_EQ(read(R"({"gpus": [{"uuid": "GPU-a", "processes": [)" + processes + "]}]}")
                .devices.at(0)
                .processes.size(),
            40u);
}

TEST_F(GpuInventory, an_old_driver_without_the_newer_symbols_is_read_as_well) {
  ::setenv("PIPE_NVML", NVML_STAND_IN_OLD, 1);
  const auto inventory = read(
      R"({"driver": "418.87", "cuda": 10010, "gpus": [{"uuid": "GPU-a", "used_mib": 5, "reserved_mib": 610,
    "processes": [{"pid": 7}, {"pid": 8}]}]})");
  ASSERT_FALSE(inventory.unavailable);
  EXPECT_EQ(inventory.cuda, "10.1");
  EXPECT_EQ(inventory.devices.at(0).memory_used, Bytes{615} << 20)
      << "an old driver does not tell reserved memory from used memory";
  ASSERT_EQ(inventory.devices.at(0).processes.size(), 2u);
  EXPECT_EQ(inventory.devices[0].processes[1].pid, 8);
}

TEST_F(GpuInventory, a_lost_gpu_is_listed_with_its_trouble) {
  const auto inventory = read(R"({"gpus": [{"uuid": "GPU-a", "lost": true}, {"uuid": "GPU-b"}]})");
  ASSERT_EQ(inventory.devices.size(), 2u);
  EXPECT_EQ(inventory.devices[0].trouble, "GPU is lost");
  EXPECT_EQ(inventory.devices[1].trouble, "");
}

TEST_F(GpuInventory, reading_again_sees_what_has_changed) {
  core::write_file_atomically(folder_.path() / "gpus.json",
                              R"({"gpus": [{"uuid": "GPU-a", "processes": [{"pid": 1}]}]})");
  ::setenv("PIPE_NVML_STAND_IN", (folder_.path() / "gpus.json").c_str(), 1);
  Machine machine;
  EXPECT_EQ(machine.read().devices.at(0).processes.size(), 1u);
  core::write_file_atomically(folder_.path() / "gpus.json", R"({"gpus": [{"uuid": "GPU-a"}]})");
  EXPECT_EQ(machine.read().devices.at(0).processes.size(), 0u);
}

struct Trouble {
  int code;
  const char *reason, *advice;
};
void PrintTo(const Trouble& trouble, std::ostream* out) { *out << trouble.reason; }

class GpuTrouble : public GpuInventory, public testing::WithParamInterface<Trouble> {};
TEST_P(GpuTrouble, is_reported_with_advice) {
  const auto inventory = read("{\"error\": " + std::to_string(GetParam().code) + "}");
  ASSERT_TRUE(inventory.unavailable);
  EXPECT_TRUE(inventory.devices.empty());
  EXPECT_EQ(inventory.unavailable->reason, GetParam().reason);
  EXPECT_NE(inventory.unavailable->advice.at(0).find(GetParam().advice), std::string::npos)
      << inventory.unavailable->advice[0];
}
INSTANTIATE_TEST_SUITE_P(
    all, GpuTrouble,
    testing::Values(
        Trouble{9, "NVIDIA's driver does not answer: Driver Not Loaded", "modprobe nvidia"},
        Trouble{18, "NVIDIA's driver does not answer: Driver/library version mismatch",
                "restart the machine"},
        Trouble{4, "NVIDIA's driver does not answer: Insufficient Permissions", "/dev/nvidiactl"},
        Trouble{999, "NVIDIA's driver does not answer: Unknown Error", "nvidia-smi"}));

TEST_F(GpuInventory, a_missing_library_is_reported_in_the_inventory) {
  ::setenv("PIPE_NVML", "/nowhere/libnvidia-ml.so.1", 1);
  const auto inventory = Machine().read();
  ASSERT_TRUE(inventory.unavailable);
  EXPECT_NE(inventory.unavailable->reason.find("/nowhere/libnvidia-ml.so.1"), std::string::npos);
}

TEST_F(GpuInventory, another_library_is_reported_in_the_inventory) {
  ::setenv("PIPE_NVML", "libc.so.6", 1);
  const auto inventory = Machine().read();
  ASSERT_TRUE(inventory.unavailable);
  EXPECT_NE(inventory.unavailable->reason.find("nvmlInit"), std::string::npos);
}

/// The text for four GPUs, the third of which is divided into two slices.
class GpuVisible : public testing::TestWithParam<std::pair<const char*, const char*>> {};
TEST_P(GpuVisible, is_what_cuda_shows) {
  Inventory inventory;
  for (unsigned i = 0; i < 4; ++i) {
    Device device;
    device.index = i, device.uuid = "GPU-" + std::to_string(i) + "a";
    inventory.devices.push_back(std::move(device));
  }
  inventory.devices[2].mig = true;
  inventory.devices[2].slices = {{.uuid = "MIG-20"}, {.uuid = "MIG-21"}};
  remove_hidden(GetParam().first, inventory);
  std::string shown;
  for (const auto& device : inventory.devices) {
    shown += (shown.empty() ? "" : " ") + std::to_string(device.index);
    for (const auto& slice : device.slices) shown += ":" + slice.uuid;
  }
  EXPECT_EQ(shown, GetParam().second);
}
INSTANTIATE_TEST_SUITE_P(table, GpuVisible,
                         testing::Values(std::pair("0,1,2,3", "0 1 2:MIG-20:MIG-21 3"),
                                         std::pair("1", "1"), std::pair("3, 1", "1 3"),
                                         std::pair("GPU-3", "3"), std::pair("GPU-0a,GPU-1a", "0 1"),
                                         std::pair("MIG-21", "2:MIG-21"),
                                         std::pair("2", "2:MIG-20:MIG-21"), std::pair("0,9,1", "0"),
                                         std::pair("0,-1,1", "0"), std::pair("", ""),
                                         std::pair("-1", ""), std::pair("NoDevFiles", ""),
                                         std::pair("GPU-", ""), std::pair("GPU-9", ""),
                                         std::pair("0,,1", "0"), std::pair("0,0", "0")));

TEST_F(GpuInventory, has_no_gpus_that_the_callers_variable_hides) {
  ::setenv("CUDA_VISIBLE_DEVICES", "1,3", 1);
  const auto two = Machine().read();
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  const auto none = Machine().read();
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  ASSERT_EQ(two.devices.size(), 2u);
  EXPECT_EQ(two.devices[1].index, 3u) << "the index is that of nvidia-smi";
  EXPECT_EQ(two.hidden_notice, "CUDA_VISIBLE_DEVICES=1,3 hides 2 of this machine's 4 GPUs");
  EXPECT_TRUE(none.devices.empty());
  EXPECT_EQ(none.hidden_notice,
            "CUDA_VISIBLE_DEVICES is empty, which hides all of this machine's 4 GPUs");
  EXPECT_EQ(Machine().read().hidden_notice, "");
}

}  // namespace
}  // namespace pipeline::gpu

#include "gpu/smi.hpp"

#include <string>

#include <gtest/gtest.h>

namespace pipeline::gpu {
namespace {

TEST(Smi, reads_what_the_script_prints) {
  const auto inventory = read_smi(
      "0, GPU-a, NVIDIA A100-SXM4-40GB, 00000000:07:00.0, 40960, 512, 550.54.15, Default, Enabled, "
      "8.0\n"
      "1, GPU-b, NVIDIA H100 80GB HBM3, 00000000:0F:00.0, 81559, 9000, 550.54.15, "
      "Exclusive_Process, [N/A], 9.0\n"
      "GPU-b, 4242, 9000\n"
      "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-a)\n"
      "  MIG 1g.5gb      Device  0: (UUID: MIG-1)\n"
      "  MIG 3g.20gb     Device  1: (UUID: MIG-2)\n"
      "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-b)\n"
      "| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     "
      "|\n");
  EXPECT_EQ(inventory.driver, "550.54.15");
  EXPECT_EQ(inventory.cuda, "12.4");
  ASSERT_EQ(inventory.devices.size(), 2U);
  const auto& divided = inventory.devices[0];
  EXPECT_TRUE(divided.mig);
  ASSERT_EQ(divided.slices.size(), 2U);
  EXPECT_EQ(divided.slices[1].uuid, "MIG-2");
  EXPECT_EQ(divided.slices[1].profile, "3g.20gb");
  EXPECT_EQ(divided.slices[1].index, 1U);
  EXPECT_EQ(divided.slices[1].memory, Bytes{20} << 30);
  const auto& whole = inventory.devices[1];
  EXPECT_EQ(whole.model, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(whole.memory, Bytes{81559} << 20);
  EXPECT_EQ(whole.memory_used, Bytes{9000} << 20);
  EXPECT_EQ(whole.mode, ComputeMode::exclusive);
  EXPECT_EQ(whole.capability.text(), "9.0");
  EXPECT_FALSE(whole.mig);
  ASSERT_EQ(whole.processes.size(), 1U);
  EXPECT_EQ(whole.processes[0].pid, 4242);
}

TEST(Smi, a_gpu_with_slices_is_divided_whatever_its_mode_was_before) {
  const auto inventory = read_smi(
      "0, GPU-a, NVIDIA A100, 00000000:07:00.0, 40960, 0, 550.54.15, Default, Disabled, 8.0\n"
      "GPU 0: NVIDIA A100 (UUID: GPU-a)\n"
      "  MIG 1g.5gb      Device  0: (UUID: MIG-1)\n");
  ASSERT_EQ(inventory.devices.size(), 1U);
  EXPECT_TRUE(inventory.devices[0].mig) << "otherwise the GPU would be offered as a whole, too";
}

TEST(Smi, a_slice_belongs_to_its_gpu_whatever_was_read_between_them) {
  std::string printed = "0, GPU-a, NVIDIA A100, 0, 40960, 0, 550.54.15, Default, Enabled, 8.0\n";
  printed += "GPU 0: NVIDIA A100 (UUID: GPU-a)\n";
  for (int i = 1; i < 100; ++i)
    printed += "1, GPU-" + std::to_string(i) + ", H100, 0, 81559, 0, 550.54.15, Default, N/A\n";
  printed += "  MIG 1g.5gb      Device  0: (UUID: MIG-1)\n";
  const auto inventory = read_smi(printed);
  ASSERT_EQ(inventory.devices.size(), 100U);
  ASSERT_EQ(inventory.devices[0].slices.size(), 1U);
  EXPECT_EQ(inventory.devices[0].slices[0].uuid, "MIG-1");
}

TEST(Smi, the_memory_of_a_compute_instance_is_behind_the_last_dot) {
  const auto inventory = read_smi(
      "0, GPU-a, NVIDIA A100, 00000000:07:00.0, 40960, 0, 550.54.15, Default, Enabled, 8.0\n"
      "GPU 0: NVIDIA A100 (UUID: GPU-a)\n"
      "  MIG 1c.3g.20gb  Device  0: (UUID: MIG-1)\n");
  ASSERT_EQ(inventory.devices.size(), 1U);
  ASSERT_EQ(inventory.devices[0].slices.size(), 1U);
  EXPECT_EQ(inventory.devices[0].slices[0].profile, "1c.3g.20gb");
  EXPECT_EQ(inventory.devices[0].slices[0].memory >> 30, 20U);
}

TEST(Smi, an_old_driver_has_no_compute_capability) {
  const auto inventory = read_smi(
      "Field \"compute_cap\" is not a valid field to query.\n"
      "0, GPU-a, Tesla K80, 00000000:07:00.0, 11441, 0, 418.87, Prohibited, [Not Supported]\n");
  ASSERT_EQ(inventory.devices.size(), 1U);
  EXPECT_EQ(inventory.devices[0].mode, ComputeMode::prohibited);
  EXPECT_EQ(inventory.devices[0].capability.major, 0U);
}

TEST(Smi, other_text_is_not_a_gpu) {
  EXPECT_TRUE(read_smi("").devices.empty());
  EXPECT_TRUE(
      read_smi("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n")
          .devices.empty());
  EXPECT_TRUE(
      read_smi("GPU 0: X (UUID: GPU-a)\n  MIG 1g.5gb Device 0: (UUID: MIG-1)\n").devices.empty());
}

}  // namespace
}  // namespace pipeline::gpu

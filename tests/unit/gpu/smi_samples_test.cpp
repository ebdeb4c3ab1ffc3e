#include "gpu/smi_samples.hpp"

#include <gtest/gtest.h>

#include <string>

namespace pipeline::gpu {
namespace {

constexpr std::uint64_t mib = 1 << 20;

TEST(SmiSample, has_what_nvidia_smi_prints) {
  const auto sample =
      read_smi_sample("3, GPU-8932f937-d72c, NVIDIA H100 80GB HBM3, 97, 9000, 81559\r");
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->index, 3u);
  EXPECT_EQ(sample->uuid, "GPU-8932f937-d72c");
  EXPECT_EQ(sample->model, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(sample->share, 0.97);
  EXPECT_EQ(sample->memory_used, 9000 * mib);
  EXPECT_EQ(sample->memory, 81559 * mib);
}

TEST(SmiSample, of_a_divided_gpu_has_no_load) {
  const auto sample = read_smi_sample("0, GPU-1, A100, [N/A], 12, 40960");
  ASSERT_TRUE(sample);
  EXPECT_FALSE(sample->share);
  EXPECT_EQ(sample->memory_used, 12 * mib);
}

class OtherSmiLine : public testing::TestWithParam<const char*> {};

TEST_P(OtherSmiLine, is_not_a_sample) { EXPECT_FALSE(read_smi_sample(GetParam())); }
INSTANTIATE_TEST_SUITE_P(
    SmiSample, OtherSmiLine,
    testing::Values("", "No devices were found", "Unable to determine the device handle for GPU",
                    "index, uuid, name, utilization.gpu, memory.used, memory.total",
                    "0, GPU-1, A100, 3, [Insufficient Permissions], 40960",
                    "0, GPU-1, A100, 3, [N/A], [N/A]", "0, GPU-1, A100, 3, 12",
                    "0, , A100, 3, 12, 40", "0, GPU-1, A100, 3, 12, 40, 5",
                    "0, GPU\"1, A100, 3, 12, 40", "0, GPU-1, A\\100, 3, 12, 40",
                    "-1, GPU-1, A100, 3, 12, 40", "0, GPU-1, A100, 3, 99999999999999999999, 40"));

TEST(SmiSample, with_an_impossible_load_has_no_load) {
  EXPECT_FALSE(read_smi_sample("0, GPU-1, A100, 101, 12, 40")->share);
}

TEST(SmiSamples, add_up_in_pieces_of_any_size) {
  const std::string text =
      "0, GPU-0, A100, 0, 100, 1000\n1, GPU-1, A100, [N/A], 10, 1000\n"
      "0, GPU-0, A100, 90, 300, 1000\n1, GPU-1, A100, [N/A], 10, 1000\n" +
      std::string(3000, 'x') + "\n0, GPU-0, A100, 60, 200, 1000\n1, GPU-1, A1";
  for (const std::size_t part : {std::size_t{1}, std::size_t{7}, text.size()}) {
    SmiSamples samples;
    for (std::size_t at = 0; at < text.size(); at += part)
      samples.feed(std::string_view(text).substr(at, part));
    ASSERT_EQ(samples.gpus().size(), 2u);
    const auto& gpu = samples.gpus()[0];
    EXPECT_EQ(usage_of(gpu.uuid, gpu.sums),
              (core::GpuUsage{"GPU-0", 0.5, 0.9, 200 * mib, 300 * mib, 1000 * mib}));
    EXPECT_EQ(usage_of("GPU-1", samples.gpus()[1].sums),
              (core::GpuUsage{"GPU-1", {}, {}, 10 * mib, 10 * mib, 1000 * mib}));
  }
}

TEST(SmiSamples, have_a_bounded_number_of_gpus) {
  SmiSamples samples;
  for (int i = 0; i < 100; ++i)
    samples.feed(std::to_string(i) + ", GPU-" + std::to_string(i) + ", A100, 1, 2, 3\n");
  EXPECT_EQ(samples.gpus().size(), SmiSamples::max_gpus);
}

}  // namespace
}  // namespace pipeline::gpu

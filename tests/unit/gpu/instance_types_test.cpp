#include "gpu/instance_types.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "gpu/model.hpp"

namespace pipeline::gpu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Bytes gi_b = Bytes{1} << 30;

std::vector<std::string> names(const InstanceNeeds& needs, std::size_t most = 4) {
  std::vector<std::string> all;
  for (const auto& each : fitting_instance_types(needs))
    if (all.size() < most) all.emplace_back(each.name);
  return all;
}

TEST(InstanceTypes, hold_the_table_of_ecs_guide) {
  struct Row {
    const char* name;
    unsigned gpus, total_gpu_memory, vcpus;
    double memory;
  };
  const std::vector<Row> rows{{"p2.xlarge", 1, 12, 4, 61},        {"p2.8xlarge", 8, 96, 32, 488},
                              {"p2.16xlarge", 16, 192, 64, 732},  {"p3.2xlarge", 1, 16, 8, 61},
                              {"p3.8xlarge", 4, 64, 32, 244},     {"p3.16xlarge", 8, 128, 64, 488},
                              {"p3dn.24xlarge", 8, 256, 96, 768}, {"g3s.xlarge", 1, 8, 4, 30.5},
                              {"g3.4xlarge", 1, 8, 16, 122},      {"g3.8xlarge", 2, 16, 32, 244},
                              {"g3.16xlarge", 4, 32, 64, 488},    {"g4dn.xlarge", 1, 16, 4, 16},
                              {"g4dn.2xlarge", 1, 16, 8, 32},     {"g4dn.4xlarge", 1, 16, 16, 64},
                              {"g4dn.8xlarge", 1, 16, 32, 128},   {"g4dn.12xlarge", 4, 64, 48, 192},
                              {"g4dn.16xlarge", 1, 16, 64, 256}};
  for (const Row& row : rows) {
    const InstanceType* type = find_instance_type(row.name);
    ASSERT_TRUE(type) << row.name;
    EXPECT_EQ(type->gpus, row.gpus) << row.name;
    EXPECT_EQ(type->gpus * type->gpu_memory, row.total_gpu_memory * 1024) << row.name;
    EXPECT_EQ(type->vcpus, row.vcpus) << row.name;
    EXPECT_EQ(type->memory, row.memory * 1024) << row.name;
  }
}

TEST(InstanceTypes, hold_the_current_families) {
  std::set<std::string> families, all;
  for (const InstanceType& type : instance_types()) {
    const std::string name = type.name;
    families.insert(name.substr(0, name.find('.')));
    EXPECT_TRUE(all.insert(name).second) << name << " twice";
    EXPECT_GT(type.gpus, 0u) << name;
    EXPECT_GT(type.gpu_memory, 1024u) << name;
  }
  for (const char* family :
       {"p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "g4ad", "g5", "g5g", "g6", "g6e", "gr6"})
    EXPECT_TRUE(families.contains(family)) << family;
  EXPECT_STREQ(find_instance_type("g5g.xlarge")->architecture, "arm64");
}

TEST(InstanceTypes, the_smallest_that_fits_comes_first) {
  EXPECT_THAT(names({.gpus = 4, .memory = 100 * gi_b}, 2),
              ElementsAre("p3.8xlarge", "g4dn.12xlarge"));
  EXPECT_THAT(names({.gpus = 1}, 1), ElementsAre("g5g.xlarge"));
  EXPECT_THAT(names({.gpus = 1, .architecture = "x86_64"}, 1), ElementsAre("g4dn.xlarge"));
  EXPECT_THAT(names({.gpus = 1, .gpu_class = "a100 80gb"}), ElementsAre("p4de.24xlarge"));
  EXPECT_THAT(names({.gpus = 1, .gpu_class = "H100"}, 1), ElementsAre("p5.4xlarge"));
  EXPECT_THAT(names({.gpus = 1, .gpu_memory = 24'000'000'000, .memory = 0}, 1),
              ElementsAre("g5.xlarge"));
  EXPECT_THAT(names({.gpus = 1, .capability = {9, 0}}, 1), ElementsAre("g7.2xlarge"));
  EXPECT_THAT(names({.gpus = 17}), IsEmpty());
}

TEST(InstanceTypes, missing_resources_are_reported) {
  EXPECT_THAT(lacks(*find_instance_type("g5.xlarge"), {.gpus = 4,
                                                       .gpu_class = "A100",
                                                       .gpu_memory = 40 * gi_b,
                                                       .capability = {9, 0},
                                                       .memory = 100 * gi_b,
                                                       .cpus = 4.5}),
              ElementsAre("it has 1 GPU, not 4", "its GPUs are A10G, not A100",
                          "its GPUs have 22.4 GiB each, not 40 GiB",
                          "its GPUs have compute capability 8.6, not 9.0",
                          "it has 16 GiB of memory, not 100 GiB", "it has 4 vCPUs, not 4.5"));
  EXPECT_THAT(lacks(*find_instance_type("g4ad.xlarge"), {.gpus = 1}),
              ElementsAre("its GPUs are AMD's (Radeon Pro V520), and NVIDIA's are needed"));
  EXPECT_THAT(lacks(*find_instance_type("g5.xlarge"), {.gpus = 1, .memory = 16 * gi_b, .cpus = 4}),
              IsEmpty());
  EXPECT_EQ(similar_instance_type("g5.xlrage"), "did you mean 'g5.xlarge'?");
  EXPECT_EQ(similar_instance_type("m5.large"), "");
  EXPECT_TRUE(is_gpu_family("g5.huge"));
  EXPECT_FALSE(is_gpu_family("m5.large"));
}

TEST(Model, is_compared_by_whole_words) {
  EXPECT_TRUE(model_matches("A100", "NVIDIA A100-SXM4-80GB"));
  EXPECT_TRUE(model_matches("a100 80gb", "NVIDIA A100-SXM4-80GB"));
  EXPECT_TRUE(model_matches("Tesla-T4", "Tesla T4"));
  EXPECT_TRUE(model_matches("RTX 4090", "NVIDIA GeForce RTX 4090"));
  EXPECT_FALSE(model_matches("A10", "NVIDIA A100-SXM4-80GB"));
  EXPECT_FALSE(model_matches("A100 40GB", "NVIDIA A100-SXM4-80GB"));
  EXPECT_FALSE(model_matches("", "NVIDIA A10"));
  EXPECT_FALSE(model_matches("--", "NVIDIA A10"));
}

}  // namespace
}  // namespace pipeline::gpu

#include "orchestrators/docker/engine_usage.hpp"

#include <gtest/gtest.h>

namespace pipeline::orchestrators::docker_engine {
namespace {

using nlohmann::json;
using std::chrono::microseconds;

json version_1(std::uint64_t nanoseconds, std::uint64_t memory) {
  return json::parse(R"({"cpu_stats": {"cpu_usage": {"usage_in_usermode": 30000000,
      "usage_in_kernelmode": 10000000}},
    "memory_stats": {"max_usage": 99, "stats": {"cache": 1, "total_cache": 300, "total_shmem": 100}},
    "blkio_stats": {"io_service_bytes_recursive": [
      {"major": 8, "minor": 0, "op": "Read", "value": 100},
      {"major": 8, "minor": 16, "op": "Read", "value": 50},
      {"major": 8, "minor": 0, "op": "Write", "value": 7},
      {"major": 8, "minor": 0, "op": "Total", "value": 157}]}})")
      .patch(json::array(
          {{{"op", "add"}, {"path", "/cpu_stats/cpu_usage/total_usage"}, {"value", nanoseconds}},
           {{"op", "add"}, {"path", "/memory_stats/usage"}, {"value", memory}}}));
}

TEST(EngineUsage, is_read_of_control_groups_of_version_1) {
  core::Usage usage;
  add_engine_sample(version_1(40'000'000, 1200), usage);
  EXPECT_EQ(usage.user, microseconds(30'000));
  EXPECT_EQ(usage.system, microseconds(10'000));
  EXPECT_EQ(usage.peak_memory, 1000U);  // Without cached files, with shared memory.
  EXPECT_EQ(usage.read, 150U);
  EXPECT_FALSE(usage.written) << "the kernel does not attribute its delayed writes to a group";
}

TEST(EngineUsage, is_read_of_control_groups_of_version_2) {
  core::Usage usage;
  add_engine_sample(json::parse(R"({"cpu_stats": {"cpu_usage": {"total_usage": 5000000,
      "usage_in_usermode": 5000000, "usage_in_kernelmode": 0}},
    "memory_stats": {"usage": 1000, "stats": {"file": 400, "shmem": 100, "anon": 600}},
    "blkio_stats": {"io_service_bytes_recursive": [{"op": "read", "value": 3},
      {"op": "write", "value": 4}]}})"),
                    usage);
  EXPECT_EQ(usage.user, microseconds(5000));
  EXPECT_EQ(usage.peak_memory, 700U);
  EXPECT_EQ(usage.read, 3U);
  EXPECT_EQ(usage.written, 4U);
}

TEST(EngineUsage, keeps_the_maximum_and_the_values_from_before_the_end) {
  core::Usage usage;
  add_engine_sample(version_1(40'000'000, 2200), usage);
  add_engine_sample(version_1(80'000'000, 1200), usage);
  const auto ended = json::parse(R"({"cpu_stats": {"cpu_usage": {"total_usage": 0}},
    "memory_stats": {}, "blkio_stats": {"io_service_bytes_recursive": null}})");
  add_engine_sample(ended, usage);
  EXPECT_EQ(*usage.user + *usage.system, microseconds(80'000));
  EXPECT_EQ(usage.peak_memory, 2000U);
  EXPECT_EQ(usage.read, 150U);
}

TEST(EngineUsage, bytes_of_no_disk_are_not_known) {
  core::Usage usage;
  auto stats = version_1(40'000'000, 1200);
  stats["blkio_stats"]["io_service_bytes_recursive"] = json::array();
  add_engine_sample(stats, usage);
  EXPECT_TRUE(usage.user);
  EXPECT_FALSE(usage.read);
  EXPECT_FALSE(usage.written);
}

TEST(EngineUsage, of_an_answer_of_another_form_is_not_known) {
  core::Usage usage;
  for (const char* text :
       {"null", "[]", R"({"cpu_stats": 3})", R"({"memory_stats": {"usage": -1}})"})
    add_engine_sample(json::parse(text), usage);
  EXPECT_EQ(usage, core::Usage());
}

}  // namespace
}  // namespace pipeline::orchestrators::docker_engine

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "orchestrators/kubernetes/pod_usage.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using std::chrono::milliseconds;

class ForgedUsage : public testing::TestWithParam<const char*> {};

TEST_P(ForgedUsage, has_no_time) {
  AttemptResult result;
  EXPECT_FALSE(read_pod_usage(GetParam(), result).has_value());
}
INSTANTIATE_TEST_SUITE_P(Pod, ForgedUsage,
                         testing::Values("", "[]", "{", "7", R"({"running_ms":-1})",
                                         R"({"running_ms":"1"})", R"({"running_ms":1e300})",
                                         R"({"running_ms":18446744073709551615})",
                                         R"({"running_ms":9007199254740992})"));

TEST(PodUsage, has_the_agents_values) {
  AttemptResult result;
  EXPECT_EQ(read_pod_usage(R"({"running_ms":1500,"user_us":7,"peak_memory":4096})", result),
            milliseconds(1500));
  const auto& usage = result.usage;
  EXPECT_EQ(usage.user, std::chrono::microseconds(7));
  EXPECT_EQ(usage.peak_memory, 4096u);
  EXPECT_FALSE(usage.written.has_value());
}

TEST(PodUsage, has_the_gpus_that_the_agent_has_seen) {
  AttemptResult result;
  read_pod_usage(
      R"({"gpus":[{"index":1,"uuid":"GPU-1","model":"H100","mean_load":0.5,"peak_load":0.75,)"
      R"("mean_memory":10,"peak_memory":20,"memory":80},)"
      R"({"index":2,"uuid":"GPU-2","model":"H100","mean_memory":1,"peak_memory":2,"memory":80}]})",
      result);
  ASSERT_EQ(result.gpus.size(), 2u);
  EXPECT_EQ(result.gpus[0].uuid, "GPU-1");
  EXPECT_EQ(result.gpus[0].index, 1u);
  EXPECT_EQ(result.gpus[0].model, "H100");
  EXPECT_EQ(*result.usage.of_gpu("GPU-1"), (core::GpuUsage{"GPU-1", 0.5, 0.75, 10, 20, 80}));
  EXPECT_EQ(*result.usage.of_gpu("GPU-2"), (core::GpuUsage{"GPU-2", {}, {}, 1, 2, 80}));
}

class ForgedGpus : public testing::TestWithParam<const char*> {};

TEST_P(ForgedGpus, are_left_out) {
  AttemptResult result;
  read_pod_usage(GetParam(), result);
  EXPECT_TRUE(result.gpus.empty());
  EXPECT_TRUE(result.usage.gpus.empty());
}
INSTANTIATE_TEST_SUITE_P(
    Pod, ForgedGpus,
    testing::Values(R"({"gpus":1})", R"({"gpus":[]})", R"({"gpus":[1,null,[]]})",
                    R"({"gpus":[{"uuid":"GPU-1"}]})",
                    R"({"gpus":[{"uuid":7,"mean_memory":1,"peak_memory":2,"memory":80}]})",
                    R"({"gpus":[{"uuid":"GPU-1","mean_memory":-1,"peak_memory":2,"memory":80}]})"));

TEST(PodUsage, has_no_more_gpus_than_a_node) {
  std::string list;
  for (int i = 0; i < 100; ++i)
    list += (i ? "," : "") + std::string(R"({"uuid":"GPU-)") + std::to_string(i) +
            R"(","mean_memory":1,"peak_memory":2,"memory":80})";
  AttemptResult result;
  read_pod_usage(R"({"gpus":[)" + list + "]}", result);
  EXPECT_EQ(result.gpus.size(), 16u);
}

TEST(PodUsage, has_the_time_of_fetching_by_the_clusters_clock) {
  const auto pod = [](const char* state) {
    nlohmann::json found;
    auto& statuses = found["status"]["initContainerStatuses"];
    statuses = {{{"name", "mesh"}, {"state", {{"terminated", {{"exitCode", 0}}}}}},
                {{"name", "agent"}, {"state", nlohmann::json::parse(state)}}};
    return found;
  };
  EXPECT_EQ(time_of_fetch(pod(R"({"terminated": {"startedAt": "2026-11-21T08:15:00Z",
      "finishedAt": "2026-11-21T08:15:04Z"}})")),
            std::chrono::seconds(4));
  for (const char* state : {"{}", R"({"running": {}})", R"({"terminated": {"startedAt": "x"}})"})
    EXPECT_EQ(time_of_fetch(pod(state)).count(), 0);
  EXPECT_EQ(time_of_fetch(nullptr).count(), 0);
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes

#include "orchestrators/kubernetes/gang_pods.hpp"

#include <gtest/gtest.h>

#include "orchestrators/kubernetes/node_fit.hpp"
#include "unit/orchestrators/kubernetes/node_json.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

json pod_on(const char* node, const char* address = "") {
  return {{"spec", {{"nodeName", node}}}, {"status", {{"podIP", address}}}};
}

TEST(GangPods, know_the_addresses_once_all_pods_have_one) {
  GangPods gang(2, 60s);
  const auto now = GangPods::TimePoint{} + 1h;
  EXPECT_EQ(gang.addresses(), "");
  gang.see(1, pod_on("b", "10.0.0.3"), now);
  EXPECT_EQ(gang.addresses(), "");
  gang.see(0, pod_on("a", "10.0.0.2"), now);
  EXPECT_EQ(gang.addresses(), "10.0.0.2,10.0.0.3");
}

TEST(GangPods, that_have_nodes_wait_for_the_others_for_their_time_only) {
  GangPods gang(3, 60s);
  const auto now = GangPods::TimePoint{} + 1h;
  for (unsigned node = 0; node < 3; ++node) gang.see(node, nullptr, now);
  EXPECT_FALSE(gang.must_give_back(0, now + 1h)) << "nobody holds anything";
  gang.see(1, pod_on("b"), now + 10s);
  gang.see(0, pod_on(""), now + 40s);
  EXPECT_FALSE(gang.must_give_back(0, now + 69s));
  EXPECT_TRUE(gang.must_give_back(0, now + 70s));
  EXPECT_FALSE(gang.must_give_back(1, now + 70s)) << "it has a node";
  gang.see(0, pod_on("a"), now + 65s);
  gang.see(2, pod_on("c"), now + 66s);
  EXPECT_FALSE(gang.must_give_back(2, now + 1h)) << "all have nodes";
}

TEST(GangPods, say_what_the_pod_without_a_node_waits_for) {
  const auto failure = GangPods(2, 60s).failure_of(json::parse(R"({"status": {"phase": "Pending",
      "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                      "message": "0/1 nodes are available: 1 Insufficient cpu."}]}})"));
  EXPECT_EQ(failure.kind, FailureKind::infrastructure);
  EXPECT_EQ(failure.message, "has no node 60 s after another pod of the step had one");
  ASSERT_EQ(failure.details.size(), 1u);
  EXPECT_NE(failure.details[0].find("Insufficient cpu"), std::string::npos) << failure.details[0];
}

TEST(NodeFit, counts_the_pods_that_an_empty_node_takes_at_once) {
  const auto machine = node("n", {{"cpu", "16"}, {"memory", "64Gi"}, {"pods", "5"}});
  const auto pod = [](const char* cpus) {
    return json{
        {"containers", {{{"name", "step"}, {"resources", {{"requests", {{"cpu", cpus}}}}}}}}};
  };
  EXPECT_EQ(pods_on(machine, pod("4")), 4u);
  EXPECT_EQ(pods_on(machine, pod("6")), 2u);
  EXPECT_EQ(pods_on(machine, pod("17")), 0u);
  EXPECT_EQ(pods_on(machine, pod("1")), 5u) << "as many as its kubelet takes";
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes

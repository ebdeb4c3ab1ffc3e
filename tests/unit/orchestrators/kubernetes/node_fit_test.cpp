#include "orchestrators/kubernetes/node_fit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/orchestrators/kubernetes/node_json.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

json taint(const char* key, const char* effect) {
  return {{"key", key}, {"value", "v"}, {"effect", effect}};
}
json pod(const json& requests, const json& more = json::object()) {
  json spec{{"containers", {{{"name", "step"}, {"resources", {{"requests", requests}}}}}}};
  spec.update(more);
  return spec;
}
json required(const std::vector<json>& terms) {
  const json list = json::array_t(terms.begin(), terms.end());
  return {
      {"affinity",
       {{"nodeAffinity",
         {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", list}}}}}}}};
}
json expression(const char* key, const char* op, const json& values = json::array()) {
  return {{"key", key}, {"operator", op}, {"values", values}};
}
json term(const std::vector<json>& expressions) {
  return {{"matchExpressions", json::array_t(expressions.begin(), expressions.end())}};
}

const json gpus_4{{"cpu", "16"}, {"memory", "64Gi"}, {"nvidia.com/gpu", "4"}};

std::vector<std::string> against(const json& node, const json& spec) {
  return fit(node, spec).lasting;
}

TEST(NodeFit, amounts_are_compared_with_those_that_the_node_has_for_pods) {
  const auto n = node("n", gpus_4);
  EXPECT_THAT(
      against(n, pod({{"cpu", "15500m"}, {"memory", "68719476736"}, {"nvidia.com/gpu", "4"}})),
      IsEmpty());
  EXPECT_THAT(against(n, pod({{"cpu", "17"}, {"memory", "65Gi"}, {"nvidia.com/gpu", "8"}})),
              ElementsAre("16 of 17 CPUs", "64 GiB of 65 GiB memory", "4 of 8 nvidia.com/gpu"));
  EXPECT_THAT(against(n, pod({{"amd.com/gpu", "1"}})), ElementsAre("none of 1 amd.com/gpu"));
  EXPECT_FALSE(fit(n, pod({{"cpu", "17"}, {"nvidia.com/gpu", "8"}})).only_gpus);
  const auto few = fit(n, pod({{"cpu", "1"}, {"nvidia.com/gpu", "8"}}));
  EXPECT_TRUE(few.only_gpus);
  EXPECT_EQ(few.gpus, 4);
}

TEST(NodeFit, amounts_of_containers_are_added_but_not_those_of_init_containers) {
  auto spec = pod({{"cpu", "10"}});
  spec["containers"].push_back({{"name", "sidecar"}, {"resources", {{"limits", {{"cpu", "7"}}}}}});
  EXPECT_THAT(against(node("n", gpus_4), spec), ElementsAre("16 of 17 CPUs"));
  spec = pod({{"cpu", "10"}});
  spec["initContainers"] = {{{"name", "first"}, {"resources", {{"requests", {{"cpu", "16"}}}}}}};
  EXPECT_THAT(against(node("n", gpus_4), spec), IsEmpty());
}

TEST(NodeFit, taints_have_to_be_tolerated_unless_they_pass_or_only_prefer) {
  const auto tainted = [](const std::vector<json>& taints) {
    return node("n", gpus_4, json::object(), json::array_t(taints.begin(), taints.end()));
  };
  const auto tolerating = [](const json& toleration) {
    return pod({{"cpu", "1"}}, {{"tolerations", json::array({toleration})}});
  };
  const auto ours = tainted({taint("pool", "NoSchedule")});
  EXPECT_THAT(against(ours, pod({{"cpu", "1"}})),
              ElementsAre("the taint pool=v:NoSchedule, which the step does not tolerate"));
  EXPECT_THAT(against(tainted({taint("pool", "PreferNoSchedule"),
                               taint("node.kubernetes.io/not-ready", "NoExecute")}),
                      pod({{"cpu", "1"}})),
              IsEmpty());
  EXPECT_THAT(against(ours, tolerating({{"key", "pool"}, {"operator", "Exists"}})), IsEmpty());
  EXPECT_THAT(against(ours, tolerating({{"operator", "Exists"}})), IsEmpty());
  EXPECT_THAT(against(ours, tolerating({{"key", "pool"}, {"value", "v"}})), IsEmpty());
  for (const auto& other : {json{{"key", "pool"}, {"operator", "Equal"}, {"value", "w"}},
                            json{{"key", "pool"}, {"operator", "Exists"}, {"effect", "NoExecute"}},
                            json{{"key", "pools"}, {"operator", "Exists"}}})
    EXPECT_EQ(against(ours, tolerating(other)).size(), 1u) << other;
}

struct NodeTermCase {
  const char* name;
  std::vector<json> expressions;
  const char* objection;  ///< Null: it fits.
};
class NodeTerms : public testing::TestWithParam<NodeTermCase> {};
TEST_P(NodeTerms, are_read_as_the_scheduler_reads_them) {
  const auto n = node("n", gpus_4, {{"pool", "gpu"}, {"memory", "40536"}});
  const auto found = against(n, pod({{"cpu", "1"}}, required({term(GetParam().expressions)})));
  if (GetParam().objection)
    EXPECT_THAT(found, ElementsAre(GetParam().objection));
  else
    EXPECT_THAT(found, IsEmpty());
}
const NodeTermCase node_term_cases[] = {
    {"in", {expression("pool", "In", {"cpu", "gpu"})}, nullptr},
    {"not_in_list", {expression("pool", "In", {"cpu", "tpu"})}, "label pool gpu, not cpu or tpu"},
    {"no_label", {expression("zone", "In", {"a"})}, "no label zone, which has to be a"},
    {"not_in", {expression("pool", "NotIn", {"gpu"})}, "label pool gpu"},
    {"not_in_without_label", {expression("zone", "NotIn", {"a"})}, nullptr},
    {"exists", {expression("zone", "Exists")}, "no label zone"},
    {"does_not_exist", {expression("pool", "DoesNotExist")}, "label pool gpu"},
    {"above", {expression("memory", "Gt", {"40535"})}, nullptr},
    {"not_above", {expression("memory", "Gt", {"40536"})}, "label memory 40536, not above 40536"},
    {"below", {expression("memory", "Lt", {"40537"})}, nullptr},
    {"no_number", {expression("pool", "Gt", {"1"})}, "label pool gpu, not above 1"},
    {"all_of_a_term",
     {expression("pool", "Exists"), expression("zone", "Exists")},
     "no label zone"},
};
INSTANTIATE_TEST_SUITE_P(All, NodeTerms, testing::ValuesIn(node_term_cases),
                         [](const auto& each) { return each.param.name; });

TEST(NodeFit, one_term_of_several_is_enough) {
  const auto n = node("n", gpus_4, {{"pool", "gpu"}});
  const auto good = term({expression("pool", "Exists")}),
             bad = term({expression("zone", "Exists")}), other = term({expression("x", "Exists")});
  EXPECT_THAT(against(n, pod({{"cpu", "1"}}, required({bad, good}))), IsEmpty());
  EXPECT_THAT(against(n, pod({{"cpu", "1"}}, required({bad, other}))),
              ElementsAre("no label zone; no label x"));
  EXPECT_THAT(against(n, pod({{"cpu", "1"}}, {{"nodeSelector", {{"pool", "cpu"}}}})),
              ElementsAre("label pool gpu, not cpu"));
}

TEST(NodeFit, nodes_with_equal_shortages_are_reported_together_the_nearest_first) {
  json nodes = json::array({node("bare", {{"cpu", "4"}})});
  for (const auto* name : {"a", "b", "c", "d", "e", "f", "g"})
    nodes.push_back(node(name, gpus_4, {{"nvidia.com/gpu.product", "Tesla-T4"}}));
  EXPECT_THAT(
      why_none_fits(nodes, pod({{"cpu", "8"}, {"nvidia.com/gpu", "8"}})),
      ElementsAre(
          "a, b, c, d, e and 2 others (4 nvidia.com/gpu, Tesla-T4) have 4 of 8 nvidia.com/gpu",
          "bare (no GPUs) has 4 of 8 CPUs; none of 8 nvidia.com/gpu"));
  EXPECT_THAT(why_none_fits(nodes, pod({{"cpu", "4"}})), IsEmpty());
  EXPECT_EQ(requests_text(pod({{"cpu", "8"}, {"memory", "8Gi"}, {"nvidia.com/gpu", "8"}})),
            "8 nvidia.com/gpu, 8 CPUs, 8 GiB memory");
}

TEST(RoomOnNodes, is_taken_only_where_a_usable_node_could_hold_the_pod) {
  const auto asks = [](const char* cpus) { return pod({{"cpu", cpus}}); };
  auto nodes = json::array({node("n1", gpus_4)});
  EXPECT_EQ(room_on(nullptr, asks("1"), false), Room::unknown);
  EXPECT_EQ(room_on(nodes, asks("16"), false), Room::taken);
  EXPECT_EQ(room_on(nodes, asks("17"), false), Room::never);
  EXPECT_EQ(room_on(nodes, asks("17"), true), Room::later) << "the cluster adds nodes";
  nodes[0]["spec"]["unschedulable"] = true;
  EXPECT_EQ(room_on(nodes, asks("16"), false), Room::later);
  nodes[0]["spec"].erase("unschedulable");
  nodes[0]["status"]["conditions"][0] = {{"type", "Ready"}, {"status", "Unknown"}};
  EXPECT_EQ(room_on(nodes, asks("16"), false), Room::later);
  EXPECT_EQ(room_on(json::array(), asks("1"), false), Room::later);
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes

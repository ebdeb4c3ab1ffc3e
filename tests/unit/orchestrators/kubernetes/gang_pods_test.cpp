#include "orchestrators/kubernetes/gang_pods.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "orchestrators/kubernetes/node_fit.hpp"
#include "orchestrators/nodes.hpp"
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

TEST(GangPods, without_a_node_are_overdue_once_others_have_waited_for_the_patience) {
  GangPods gang(3, 60s);
  const auto now = GangPods::TimePoint{} + 1h;
  for (unsigned node = 0; node < 3; ++node) gang.see(node, nullptr, now);
  EXPECT_FALSE(gang.is_overdue(0, now + 1h)) << "no pod holds a node";
  gang.see(1, pod_on("b"), now + 10s);
  gang.see(0, pod_on(""), now + 40s);
  EXPECT_FALSE(gang.is_overdue(0, now + 69s));
  EXPECT_TRUE(gang.is_overdue(0, now + 70s));
  EXPECT_FALSE(gang.is_overdue(1, now + 70s)) << "this pod has a node";
  gang.see(0, pod_on("a"), now + 65s);
  gang.see(2, pod_on("c"), now + 66s);
  EXPECT_FALSE(gang.is_overdue(2, now + 1h)) << "all pods have nodes";
}

TEST(GangPods, report_what_the_pod_without_a_node_waits_for) {
  const auto failure = GangPods(2, 60s).failure_of(json::parse(R"({"status": {"phase": "Pending",
      "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                      "message": "0/1 nodes are available: 1 Insufficient cpu."}]}})"));
  EXPECT_EQ(failure.kind, FailureKind::infrastructure);
  EXPECT_EQ(failure.message, "has no node 60 s after another pod of the step had one");
  ASSERT_EQ(failure.details.size(), 1u);
  EXPECT_NE(failure.details[0].find("Insufficient cpu"), std::string::npos) << failure.details[0];
}

/// Gangs of three pods on four slots, in simulated seconds. The pods get slots in a random order
/// at random times, as a scheduler gives them that knows nothing of gangs.
class TwoGangs {
 public:
  explicit TwoGangs(unsigned seed) : random_(seed) {}

  /// Returns whether both have run within a day.
  bool run() {
    constexpr int day = 24 * 60 * 60;
    for (; second_ < day && !(gangs_[0].has_run && gangs_[1].has_run); ++second_) {
      for (auto& gang : gangs_) pass_time(gang);
      for (auto slots = below(3); slots > 0; --slots) give_a_slot();
    }
    return second_ < day;
  }
  /// The longest time for which a gang has held slots that were not all it needs.
  int max_hold() const { return max_hold_; }
  int given_back() const { return given_back_; }

  static constexpr int patience = 20;

 private:
  struct GangOfThree {
    GangPods pods{3, std::chrono::seconds(patience)};
    std::array<bool, 3> has_slot{};
    bool has_run = false;
    int starts_at = 0, ends_at = 0, holds_since = 0;
    long slots() const { return std::ranges::count(has_slot, true); }
  };

  int below(int end) { return std::uniform_int_distribution<int>(0, end - 1)(random_); }
  GangPods::TimePoint now() const { return GangPods::TimePoint{} + std::chrono::seconds(second_); }

  void pass_time(GangOfThree& gang) {
    if (gang.has_run || second_ < gang.starts_at) return;
    if (gang.slots() == 3) return run(gang);
    if (gang.slots() > 0) max_hold_ = std::max(max_hold_, second_ - gang.holds_since);
    for (unsigned pod = 0; pod < 3; ++pod)
      if (gang.pods.is_overdue(pod, now())) return give_back(gang);
  }

  void run(GangOfThree& gang) {
    if (gang.ends_at == 0) gang.ends_at = second_ + 1 + below(60);
    if (second_ < gang.ends_at) return;
    gang.has_run = true;
    gang.has_slot = {};
  }

  void give_back(GangOfThree& gang) {
    ++given_back_;
    const auto pause = std::chrono::ceil<std::chrono::seconds>(pause_of(max_gang_pause, random_));
    gang = {};
    gang.starts_at = second_ + static_cast<int>(pause.count());
  }

  void give_a_slot() {
    constexpr long all_slots = 4;
    if (gangs_[0].slots() + gangs_[1].slots() == all_slots) return;
    auto& gang = gangs_[static_cast<std::size_t>(below(2))];
    const auto pod = static_cast<unsigned>(below(3));
    if (gang.has_run || second_ < gang.starts_at || gang.has_slot[pod]) return;
    if (gang.slots() == 0) gang.holds_since = second_;
    gang.has_slot[pod] = true;
    static const json placed = pod_on("a");
    gang.pods.see(pod, placed, now());
  }

  std::minstd_rand random_;
  std::array<GangOfThree, 2> gangs_;
  int second_ = 0, max_hold_ = 0, given_back_ = 0;
};

TEST(GangPods, of_two_steps_that_need_more_than_all_slots_both_run) {
  int given_back = 0;
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    TwoGangs gangs(seed);
    EXPECT_TRUE(gangs.run()) << "the two gangs wait for each other, seed " << seed;
    EXPECT_LE(gangs.max_hold(), TwoGangs::patience) << seed;
    given_back += gangs.given_back();
  }
  EXPECT_GT(given_back, 100) << "the schedules have no conflicts";
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
  EXPECT_EQ(pods_on(machine, pod("1")), 5u) << "the node takes as many pods as its kubelet allows";
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes

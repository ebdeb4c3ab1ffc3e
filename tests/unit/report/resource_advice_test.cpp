#include "report/resource_advice.hpp"

#include <gtest/gtest.h>

#include "core/file.hpp"

namespace pipeline::report {
namespace {

constexpr std::uint64_t mebibyte = 1u << 20, gibibyte = 1u << 30;

TEST(ResourceAdvice, step_that_asks_for_what_it_uses_gets_no_advice) {
  ResourceSettings asked;
  EXPECT_TRUE(advise(asked, {.runs = 3, .memory = gibibyte, .cpus = 2.0}).empty());
  asked.memory = 3 * gibibyte;
  asked.cpu_count = 2;
  EXPECT_TRUE(advise(asked, {.runs = 3, .memory = 2 * gibibyte, .cpus = 1.5}).empty());
  EXPECT_TRUE(advise(asked, {.runs = 0}).empty());
}

TEST(ResourceAdvice, waste_is_named_with_the_requested_and_the_used_amount) {
  ResourceSettings asked;
  asked.memory = 8 * gibibyte;
  asked.cpu_count = 4;
  const auto advice = advise(asked, {.runs = 14, .memory = 2150 * mebibyte, .cpus = 0.98});
  ASSERT_EQ(advice.size(), 2U);
  EXPECT_EQ(advice[0].setting, "memory");
  EXPECT_EQ(advice[0].value, "2816MiB");
  EXPECT_EQ(advice[0].reason, "8 GiB asked, 2.1 GiB at most used in 14 runs");
  EXPECT_EQ(advice[1].setting, "cpu_count");
  EXPECT_EQ(advice[1].value, "1.5");
  EXPECT_EQ(advice[1].reason, "4 asked, 0.98 at most used in 14 runs");
}

TEST(ResourceAdvice, a_few_megabytes_too_many_do_not_count_as_waste) {
  ResourceSettings asked;
  asked.memory = 128 * mebibyte;
  EXPECT_TRUE(advise(asked, {.runs = 1, .memory = 8 * mebibyte}).empty());
}

TEST(ResourceAdvice, step_near_its_limit_needs_more) {
  ResourceSettings asked;
  asked.memory = 512 * mebibyte;
  const auto advice = advise(asked, {.runs = 2, .memory = 490 * mebibyte});
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_EQ(advice[0].value, "640MiB");
}

TEST(ResourceAdvice, step_that_was_killed_for_its_memory_needs_twice_as_much) {
  ResourceSettings asked;
  asked.memory = gibibyte;
  const auto advice = advise(asked, {.runs = 2, .memory = 900 * mebibyte, .is_killed = true});
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_EQ(advice[0].value, "2GiB");
  EXPECT_NE(advice[0].reason.find("killed for lack of memory"), std::string::npos);
}

TEST(ResourceAdvice, the_limit_that_ended_the_last_attempt_is_doubled_unless_more_is_asked_for) {
  ResourceSettings asked;
  asked.memory = gibibyte;
  const StepUse used{
      .runs = 1, .memory = 2 * gibibyte, .is_killed = true, .killed_with = 2 * gibibyte};
  const auto advice = advise(asked, used);
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_EQ(advice[0].value, "4GiB");
  EXPECT_EQ(advice[0].reason,
            "1 GiB asked, the last attempt was killed for lack of memory with 2 GiB");
  asked.memory = 16 * gibibyte;
  EXPECT_TRUE(advise(asked, used).empty()) << "no attempt has had as much memory";
}

TEST(ResourceAdvice, memory_that_worked_after_a_kill_is_advised_until_it_is_asked_for) {
  ResourceSettings asked;
  asked.memory = gibibyte;
  const StepUse used{
      .runs = 2, .memory = gibibyte, .killed_with = 2 * gibibyte, .worked_with = 4 * gibibyte};
  const auto advice = advise(asked, used);
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_EQ(advice[0].value, "4GiB");
  EXPECT_EQ(advice[0].reason, "1 GiB asked, killed for lack of memory with 2 GiB, not with 4 GiB");
  asked.memory = 4 * gibibyte;
  for (const auto& one : advise(asked, used))
    EXPECT_EQ(one.reason.find("killed"), std::string::npos);
}

TEST(ResourceAdvice, gpus_that_no_attempt_used_are_too_many) {
  ResourceSettings asked;
  asked.gpu_count = 2;
  const auto advice = advise(asked, {.runs = 14, .gpus = 1});
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_EQ(advice[0].setting, "gpu_count");
  EXPECT_EQ(advice[0].value, "1");
  EXPECT_EQ(advice[0].reason, "2 asked, 1 idle in 14 runs");
  EXPECT_EQ(advise(asked, {.runs = 1, .gpus = 0})[0].reason, "2 asked, all idle in 1 run");
  EXPECT_TRUE(advise(asked, {.runs = 14, .gpus = 2}).empty());
  EXPECT_TRUE(advise(asked, {.runs = 14}).empty()) << "the GPUs were not measured";
}

class StepUses : public testing::Test {
 protected:
  StepUses() {
    for (const char* id : {"r1", "r2"}) {
      store::RunRecord run{.id = id, .pipeline = "p", .parameters = "{}"};
      run.driver.process = store::ProcessId::self();
      store.runs().add(run);
    }
  }
  void add(const std::string& run, const std::string& step, int began, core::Usage usage,
           std::chrono::milliseconds running, const std::string& failure = "") {
    store.attempts().put({.run = run,
                          .step = step,
                          .started = WallTime(std::chrono::milliseconds(began)),
                          .failure_kind = failure,
                          .usage = usage,
                          .phases = {.running = running}});
  }
  core::TemporaryFolder folder;
  store::RunStore store{folder.path() / "state"};
};

TEST_F(StepUses, instances_and_runs_count_together_and_short_attempts_have_no_cpus) {
  using std::chrono::seconds, std::chrono::milliseconds;
  add("r1", "train.c-1", 1, {.user = seconds(3), .system = seconds(1), .peak_memory = 70},
      seconds(4));
  add("r1", "train.c-2", 2, {.user = seconds(8), .peak_memory = 50}, seconds(4));
  add("r2", "train.c-1", 3, {.user = seconds(1), .peak_memory = 60}, milliseconds(10));
  add("r2", "other", 4, {}, seconds(4));
  const auto uses = step_uses(store, "p");
  const auto& train = uses.at("train");
  EXPECT_EQ(train.runs, 2U);
  EXPECT_EQ(train.memory, 70U);
  EXPECT_DOUBLE_EQ(*train.cpus, 2.0);
  EXPECT_FALSE(uses.at("other").memory);
  EXPECT_TRUE(step_uses(store, "q").empty());
}

TEST_F(StepUses, a_gpu_counts_that_any_long_attempt_kept_busy) {
  using std::chrono::seconds, std::chrono::milliseconds;
  const core::GpuUsage busy{.uuid = "a", .mean_load = 0.1, .peak_load = 0.5}, silent{.uuid = "b"},
      idle{.uuid = "c", .mean_load = 0.0, .peak_load = 0.0};
  add("r1", "train", 1, {.gpus = {idle, idle}}, seconds(4));
  add("r1", "train", 2, {.gpus = {busy, idle}}, seconds(4));
  add("r2", "train", 3, {.gpus = {busy, busy}}, milliseconds(10));
  add("r2", "slices", 4, {.gpus = {silent, idle}}, seconds(4));
  const auto uses = step_uses(store, "p");
  EXPECT_EQ(uses.at("train").gpus, 1U);
  EXPECT_EQ(uses.at("train").runs, 2U);
  EXPECT_EQ(uses.at("slices").gpus, 1U) << "a slice does not say";
}

TEST_F(StepUses, the_node_that_used_most_counts_not_all_nodes_together) {
  using std::chrono::seconds;
  const auto task = [](unsigned rank, unsigned node, std::uint64_t memory, int user) {
    store::TaskRecord record{.rank = rank, .node_rank = node};
    record.usage = {.user = seconds(user), .system = seconds(1), .peak_memory = memory};
    return record;
  };
  const std::vector<store::TaskRecord> tasks{task(0, 0, 10, 1), task(1, 0, 20, 1),
                                             task(2, 1, 40, 7), task(3, 1, 5, 1)};
  store.attempts().put({.run = "r1",
                        .step = "train",
                        .usage = {.user = seconds(10), .system = seconds(4), .peak_memory = 75},
                        .phases = {.running = seconds(5)}},
                       tasks);
  const auto train = step_uses(store, "p").at("train");
  EXPECT_EQ(train.memory, 45U);
  EXPECT_DOUBLE_EQ(*train.cpus, 2.0);
}

TEST_F(StepUses, only_the_last_attempt_decides_whether_the_memory_was_too_small) {
  const auto killed = std::string(to_string(FailureKind::out_of_memory));
  add("r1", "a", 2, {.peak_memory = 1}, {}, "");
  add("r2", "a", 1, {.peak_memory = 1}, {}, killed);
  add("r1", "b", 1, {.peak_memory = 1}, {}, "");
  add("r2", "b", 2, {.peak_memory = 1}, {}, killed);
  const auto uses = step_uses(store, "p");
  EXPECT_FALSE(uses.at("a").is_killed);
  EXPECT_TRUE(uses.at("b").is_killed);
}

}  // namespace
}  // namespace pipeline::report

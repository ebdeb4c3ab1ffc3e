#include "model/graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <stdexcept>

namespace pipeline::model {
namespace {

using Needs = std::vector<std::vector<StepIndex>>;
using Steps = std::vector<StepIndex>;

Needs random_needs(std::mt19937& random, StepIndex size) {
  Needs needs(size);
  for (StepIndex i = 1; i < size; ++i) {
    for (auto count = random() % 4; count > 0; --count)
      needs[i].push_back(static_cast<StepIndex>(random() % i));
  }
  // Numbers say nothing about the order.
  Steps names(size);
  for (StepIndex i = 0; i < size; ++i) names[i] = i;
  std::shuffle(names.begin(), names.end(), random);
  Needs shuffled(size);
  for (StepIndex i = 0; i < size; ++i) {
    for (const auto need : needs[i]) shuffled[names[i]].push_back(names[need]);
  }
  return shuffled;
}

TEST(Graph, knows_both_directions_and_drops_duplicates) {
  const Graph graph({{}, {0, 0}, {1, 0}});
  EXPECT_EQ(graph.size(), 3u);
  EXPECT_EQ(Steps(graph.needs(2).begin(), graph.needs(2).end()), (Steps{0, 1}));
  EXPECT_EQ(graph.needs(1).size(), 1u);
  EXPECT_EQ(Steps(graph.needed_by(0).begin(), graph.needed_by(0).end()), (Steps{1, 2}));
  EXPECT_EQ(Graph({}).size(), 0u);
  EXPECT_THROW(Graph(Needs{{1}}), std::out_of_range);
}

TEST(Graph, order_takes_the_smaller_index_where_there_is_a_choice) {
  EXPECT_EQ(Graph({{}, {}, {}}).topological_order(), (Steps{0, 1, 2}));
  EXPECT_EQ(Graph({{3}, {}, {1}, {}}).topological_order(), (Steps{1, 2, 3, 0}));
}

TEST(Graph, cycle_is_named_step_by_step) {
  EXPECT_TRUE(Graph({{}, {0}, {1}}).find_cycle().empty());
  EXPECT_EQ(Graph(Needs{{0}}).find_cycle(), (Steps{0}));
  EXPECT_EQ(Graph({{1}, {2}, {0}}).find_cycle(), (Steps{0, 1, 2}));
  EXPECT_EQ(Graph({{}, {3, 0}, {1}, {2}, {1}}).find_cycle(), (Steps{1, 3, 2}));
  EXPECT_FALSE(Graph({{1}, {0}, {}}).topological_order());
  EXPECT_THROW(Scheduler(Graph({{1}, {0}})), std::invalid_argument);
}

TEST(Graph, every_cycle_found_is_a_real_cycle) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    auto needs = random_needs(random, 30);
    for (int i = 0; i < 3; ++i)
      needs[random() % 30].push_back(static_cast<StepIndex>(random() % 30));
    const Graph graph(needs);
    const auto cycle = graph.find_cycle();
    ASSERT_EQ(cycle.empty(), graph.topological_order().has_value()) << "seed " << seed;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const auto of = graph.needs(cycle[i]);
      EXPECT_TRUE(std::find(of.begin(), of.end(), cycle[(i + 1) % cycle.size()]) != of.end())
          << "seed " << seed;
    }
  }
}

TEST(Scheduler, longest_chain_goes_first_then_the_smaller_index) {
  const Graph graph({{}, {}, {}, {2}, {3}});  // 2 -> 3 -> 4
  Scheduler scheduler(graph);
  EXPECT_EQ(scheduler.take(), 2u);
  EXPECT_EQ(scheduler.take(), 0u);
  scheduler.mark_succeeded(2);
  EXPECT_EQ(scheduler.take(), 3u);
  EXPECT_EQ(scheduler.take(), 1u);
  EXPECT_FALSE(scheduler.take());
  EXPECT_FALSE(scheduler.has_ready());
  EXPECT_EQ(scheduler.running(), 3u);
  EXPECT_FALSE(scheduler.done());
}

TEST(Scheduler, every_step_runs_once_and_after_its_needs) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const Graph graph(random_needs(random, static_cast<StepIndex>(1 + random() % 60)));
    Scheduler scheduler(graph);
    std::vector<bool> done(graph.size()), started(graph.size());
    Steps running;
    while (!scheduler.done()) {
      while (running.size() < 4) {
        const auto step = scheduler.take();
        if (!step) break;
        ASSERT_FALSE(started[*step]) << "seed " << seed;
        for (const auto need : graph.needs(*step)) ASSERT_TRUE(done[need]) << "seed " << seed;
        started[*step] = true;
        running.push_back(*step);
      }
      ASSERT_FALSE(running.empty()) << "seed " << seed;
      ASSERT_EQ(scheduler.running(), running.size());
      std::swap(running[random() % running.size()], running.back());
      done[running.back()] = true;
      scheduler.mark_succeeded(running.back());
      running.pop_back();
    }
    EXPECT_EQ(std::count(done.begin(), done.end(), true), static_cast<std::ptrdiff_t>(graph.size()))
        << "seed " << seed;
  }
}

TEST(Scheduler, failed_step_skips_only_the_steps_that_depend_on_it) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const Graph graph(random_needs(random, 40));
    const auto order = *graph.topological_order();
    Scheduler scheduler(graph);
    std::set<StepIndex> lost, ended;
    while (!scheduler.done()) {
      const auto step = scheduler.take();
      ASSERT_TRUE(step) << "seed " << seed;
      ASSERT_FALSE(lost.count(*step)) << "seed " << seed;
      ended.insert(*step);
      if (random() % 6) {
        scheduler.mark_succeeded(*step);
        continue;
      }
      std::set<StepIndex> expected = {*step};
      Steps in_order;
      for (const auto other : order) {
        if (std::any_of(graph.needs(other).begin(), graph.needs(other).end(),
                        [&](StepIndex need) { return expected.count(need); })) {
          expected.insert(other);
          if (!lost.count(other)) in_order.push_back(other);
        }
      }
      ASSERT_EQ(scheduler.mark_failed(*step), in_order) << "seed " << seed;
      lost.insert(in_order.begin(), in_order.end());
    }
    EXPECT_EQ(lost.size() + ended.size(), graph.size()) << "seed " << seed;
    EXPECT_EQ(scheduler.running(), 0u);
  }
}

TEST(Scheduler, step_may_be_skipped_before_its_turn) {
  const Graph graph({{}, {}, {0, 1}});
  Scheduler scheduler(graph);
  EXPECT_EQ(scheduler.mark_failed(1), (Steps{2}));
  EXPECT_TRUE(scheduler.mark_failed(1).empty());
  EXPECT_EQ(scheduler.take(), 0u);
  EXPECT_FALSE(scheduler.take());
  scheduler.mark_succeeded(0);
  EXPECT_TRUE(scheduler.done());
}

TEST(Scheduler, steps_that_wait_for_ends_are_ready_after_failures) {
  const Graph graph({{}, {0}, {0, 1}, {2}});  // 2 waits for the ends of 0 and 1
  Scheduler scheduler(graph, {false, false, true, false});
  EXPECT_EQ(scheduler.take(), 0u);
  EXPECT_FALSE(scheduler.take());
  EXPECT_EQ(scheduler.mark_failed(0), (Steps{1}));
  EXPECT_EQ(scheduler.take(), 2u);
  scheduler.mark_succeeded(2);
  EXPECT_EQ(scheduler.take(), 3u);
  scheduler.mark_succeeded(3);
  EXPECT_TRUE(scheduler.done());
}

TEST(Scheduler, hundred_thousand_steps_in_a_chain_need_no_stack) {
  Needs needs(100'000);
  for (StepIndex i = 1; i < needs.size(); ++i) needs[i] = {i - 1};
  const Graph graph(needs);
  EXPECT_TRUE(graph.find_cycle().empty());
  Scheduler scheduler(graph);
  EXPECT_EQ(scheduler.mark_failed(*scheduler.take()).size(), needs.size() - 1);
  EXPECT_TRUE(scheduler.done());
  needs[0] = {99'999};
  EXPECT_EQ(Graph(needs).find_cycle().size(), needs.size());
}

TEST(Scheduler, steps_that_are_added_run_before_their_barrier) {
  const Graph graph({{}, {0}, {1}});
  Scheduler scheduler(graph);
  EXPECT_EQ(scheduler.take(), 0u);
  scheduler.mark_succeeded(0);
  EXPECT_TRUE(scheduler.has_ready());  // The barrier, which then has to wait again.
  scheduler.grow(1, {{0}, {0}, {3}});
  EXPECT_EQ(scheduler.take(), 3u);
  EXPECT_EQ(scheduler.take(), 4u);
  EXPECT_FALSE(scheduler.take());
  scheduler.mark_succeeded(3);
  EXPECT_EQ(scheduler.take(), 5u);
  scheduler.mark_succeeded(4);
  EXPECT_FALSE(scheduler.take());
  scheduler.mark_succeeded(5);
  EXPECT_EQ(scheduler.take(), 1u);
  scheduler.mark_succeeded(1);
  EXPECT_EQ(scheduler.take(), 2u);
  scheduler.mark_succeeded(2);
  EXPECT_TRUE(scheduler.done());
}

TEST(Scheduler, barrier_without_steps_is_ready) {
  const Graph graph({{}, {0}});
  Scheduler scheduler(graph);
  scheduler.grow(0, {});
  EXPECT_EQ(scheduler.take(), 0u);
  EXPECT_FALSE(scheduler.take());
}

TEST(Scheduler, barrier_is_ready_when_its_steps_have_ended_also_by_failures) {
  const Graph graph({{}, {0}});
  Scheduler scheduler(graph);
  scheduler.grow(0, {{}, {}, {2}});
  EXPECT_EQ(scheduler.take(), 2u);
  EXPECT_THAT(scheduler.mark_failed(2), testing::ElementsAre(4u));
  EXPECT_EQ(scheduler.take(), 3u);
  EXPECT_FALSE(scheduler.take());
  scheduler.mark_succeeded(3);
  EXPECT_EQ(scheduler.take(), 0u);
  EXPECT_THAT(scheduler.mark_failed(0), testing::ElementsAre(1u));
  EXPECT_TRUE(scheduler.done());
}

TEST(Scheduler, a_hundred_thousand_steps_are_added_to_two_barriers) {
  const Graph graph({{}, {}, {0, 1}});
  Scheduler scheduler(graph);
  constexpr StepIndex count = 100'000;
  scheduler.grow(0, std::vector<std::vector<StepIndex>>(count));
  std::vector<std::vector<StepIndex>> needs;
  for (StepIndex i = 0; i < count; ++i) needs.push_back({3 + i});
  scheduler.grow(1, needs);
  StepIndex taken = 0;
  while (const auto step = scheduler.take()) {
    scheduler.mark_succeeded(*step);
    ++taken;
  }
  EXPECT_EQ(taken, 2 * count + 3);
  EXPECT_TRUE(scheduler.done());
}

}  // namespace
}  // namespace pipeline::model

#include "engine/attempt/progress.hpp"

#include <gtest/gtest.h>

namespace pipeline::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Clock::time_point begin{};

/// What ranks have done whose CPUs were used for these times.
orchestrators::ActivityByRank after(std::initializer_list<milliseconds> cpu) {
  orchestrators::ActivityByRank all;
  for (const auto each : cpu)
    all.emplace_back(static_cast<unsigned>(all.size()), core::Activity{.cpu = each});
  return all;
}

TEST(Progress, a_rank_that_computes_nothing_is_idle_since_it_last_computed) {
  Progress progress;
  EXPECT_EQ(progress.take(after({seconds(0), seconds(0)}), begin), begin);
  EXPECT_EQ(progress.take(after({seconds(1), seconds(1)}), begin + seconds(1)), begin + seconds(1));
  EXPECT_EQ(progress.take(after({seconds(2), seconds(1)}), begin + seconds(2)), begin + seconds(1));
  EXPECT_EQ(progress.take(after({seconds(9), seconds(1)}), begin + seconds(9)), begin + seconds(1));
}

TEST(Progress, a_waiting_rank_that_polls_is_idle) {
  Progress progress;
  progress.take(after({seconds(0)}), begin);
  for (int second = 1; second <= 600; ++second)
    EXPECT_EQ(progress.take(after({second * milliseconds(10)}), begin + second * seconds(1)),
              begin);
}

TEST(Progress, a_rank_that_reads_and_writes_is_not_idle) {
  Progress progress;
  orchestrators::ActivityByRank all{{0, {.bytes = 1000}}};
  progress.take(all, begin);
  all[0].second.bytes += 1 << 20;
  EXPECT_EQ(progress.take(all, begin + seconds(5)), begin + seconds(5));
}

TEST(Progress, ranks_that_begin_again_are_idle_from_then_on) {
  Progress progress;
  progress.take(after({seconds(100)}), begin);
  EXPECT_EQ(progress.take(after({seconds(0)}), begin + seconds(5)), begin + seconds(5));
  EXPECT_EQ(progress.take(after({seconds(0)}), begin + seconds(9)), begin + seconds(5));
}

TEST(Progress, an_agent_reports_when_its_rank_made_progress) {
  Progress progress;
  const auto after_second = [](int second) {
    return orchestrators::ActivityByRank{{0, {.progressed = begin + seconds(second)}}};
  };
  EXPECT_EQ(progress.take(after_second(0), begin + seconds(1)), begin + seconds(1));
  EXPECT_EQ(progress.take(after_second(4), begin + seconds(5)), begin + seconds(4));
  EXPECT_EQ(progress.take(after_second(4), begin + seconds(9)), begin + seconds(4));
  EXPECT_EQ(progress.take(after_second(99), begin + seconds(10)), begin + seconds(10))
      << "clocks differ";
}

TEST(Progress, nothing_is_known_of_what_cannot_be_seen) {
  Progress progress;
  EXPECT_EQ(progress.take({}, begin), std::nullopt);
}

}  // namespace
}  // namespace pipeline::engine

// Threads that share work, and what becomes of their number and of the order of their results.
#include "stager/workers.hpp"

#include <chrono>
#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pipeline::stager {
namespace {

using namespace std::chrono_literals;

TEST(WorkersOfTransfers, do_each_number_once_in_several_threads) {
  ThreadBudget threads;
  Workers workers(1000, threads);
  std::mutex mutex;
  std::multiset<std::size_t> done;
  std::set<std::thread::id> who;
  workers.run([&](std::size_t i) {
    std::this_thread::sleep_for(50us);
    const std::lock_guard lock(mutex);
    done.insert(i);
    who.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(done.size(), 1000u);
  EXPECT_EQ(std::set(done.begin(), done.end()).size(), 1000u);
  EXPECT_GT(who.size(), 1u);
  EXPECT_LE(who.size(), blobs::max_connections);
}

TEST(WorkersOfTransfers, run_on_the_calling_thread_alone_where_no_other_may_start) {
  ThreadBudget threads(1);
  Workers workers(20, threads);
  std::set<std::thread::id> who;
  workers.run([&](std::size_t) { who.insert(std::this_thread::get_id()); });
  EXPECT_THAT(who, testing::ElementsAre(std::this_thread::get_id()));
}

TEST(WorkersOfTransfers, within_others_share_one_number_of_threads) {
  ThreadBudget threads(4);
  std::atomic<int> running = 0, most = 0;
  Workers outer(8, threads);
  outer.run([&](std::size_t) {
    Workers inner(8, threads);
    inner.run([&](std::size_t) {
      const int now = ++running;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
      }
      std::this_thread::sleep_for(100us);
      --running;
    });
  });
  EXPECT_LE(most, 4);
  EXPECT_GT(most, 1);
}

TEST(WorkersOfTransfers, end_with_the_first_failure) {
  ThreadBudget threads;
  Workers workers(1000, threads);
  std::atomic<int> done = 0;
  EXPECT_THROW(workers.run([&](std::size_t i) {
    if (i == 3) throw std::runtime_error("no");
    std::this_thread::sleep_for(1ms);
    ++done;
  }),
               std::runtime_error);
  EXPECT_TRUE(workers.is_over());
  EXPECT_LT(done, 500);
}

TEST(ResultsInOrder, are_handled_in_order_and_once_whichever_thread_makes_them) {
  ThreadBudget threads;
  std::vector<std::size_t> handled;
  InOrder in_order([&](std::size_t i) { handled.push_back(i); });
  Workers workers(500, threads);
  workers.run([&](std::size_t i) {
    ASSERT_TRUE(in_order.wait(i, 16));
    std::this_thread::sleep_for(std::chrono::microseconds(i * 7919 % 200));
    in_order.ready(i);
  });
  ASSERT_EQ(handled.size(), 500u);
  EXPECT_TRUE(std::ranges::is_sorted(handled));
}

TEST(ResultsInOrder, are_not_waited_for_once_one_of_them_cannot_come) {
  ThreadBudget threads;
  InOrder in_order([](std::size_t) {});
  Workers workers(500, threads);
  std::atomic<int> waited = 0;
  EXPECT_THROW(workers.run([&](std::size_t i) {
    if (i == 0) {
      std::this_thread::sleep_for(5ms);
      in_order.abandon();
      throw std::runtime_error("no");
    }
    if (!in_order.wait(i, 2))
      ++waited;
    else
      in_order.ready(i);
  }),
               std::runtime_error);
}

/// Gives the limit as many successes as it wants for a decision.
void transfer(blobs::ConnectionLimit& limit, double rate_of_each) {
  constexpr std::uint64_t bytes = 1'000'000;
  for (auto left = 2 * limit.value(); left > 0; --left)
    limit.note_success(bytes, blobs::ConnectionLimit::Seconds(bytes / rate_of_each));
}

TEST(ConnectionLimit, grows_as_long_as_more_connections_are_faster) {
  blobs::ConnectionLimit far(8), narrow(8);
  EXPECT_EQ(far.value(), 2u);
  for (int i = 0; i < 20; ++i) transfer(far, 5e6);
  EXPECT_EQ(far.value(), 8u);
  std::size_t most = 0;
  for (int i = 0; i < 20; ++i) {
    transfer(narrow, 10e6 / static_cast<double>(narrow.value()));
    most = std::max(most, narrow.value());
  }
  EXPECT_LE(narrow.value(), 3u);
  EXPECT_EQ(most, 3u) << "one more connection is tried now and then";
}

TEST(ConnectionLimit, is_halved_once_for_failures_at_a_time) {
  blobs::ConnectionLimit limit(8);
  for (int i = 0; i < 20; ++i) transfer(limit, 5e6);
  const blobs::ConnectionLimit::Clock::time_point begin{100s};
  for (int i = 0; i < 8; ++i) limit.note_failure(begin + i * 100ms);
  EXPECT_EQ(limit.value(), 4u);
  limit.note_failure(begin + 1s);
  EXPECT_EQ(limit.value(), 2u);
  for (int i = 2; i < 9; ++i) limit.note_failure(begin + i * 1s);
  EXPECT_EQ(limit.value(), 1u);
  transfer(limit, 5e6);
  EXPECT_EQ(limit.value(), 1u) << "the limit grows slowly";
  for (int i = 0; i < 30; ++i) transfer(limit, 5e6);
  EXPECT_EQ(limit.value(), 8u);
}

TEST(SizesOfTransfers, suffice_for_the_number_of_parts_and_keep_ranges_bounded) {
  EXPECT_EQ(blobs::part_size(1, 100), blobs::min_part);
  const auto large = (std::uint64_t{500} << 30) + 1;
  EXPECT_GE(blobs::part_size(large, 100) * 100, large);
  EXPECT_EQ(blobs::range_size(1, {}), std::uint64_t{8} << 20);
  EXPECT_EQ(blobs::range_size(large, {}), std::uint64_t{64} << 20);
}

TEST(SizesOfTransfers, grow_with_the_time_that_a_server_needs_for_each_response) {
  const blobs::Pace quick{20ms, 80ms, blobs::first_range};
  EXPECT_EQ(blobs::range_size(std::uint64_t{1} << 30, quick), std::uint64_t{16} << 20);
  EXPECT_TRUE(blobs::may_split_stream(quick));
  const blobs::Pace slow{2s, 40ms, blobs::first_range};
  EXPECT_GT(blobs::range_size(std::uint64_t{1} << 30, slow), std::uint64_t{1} << 30);
  EXPECT_FALSE(blobs::may_split_stream(slow));
}

}  // namespace
}  // namespace pipeline::stager

#include "dsl/barrier.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace pipeline::dsl {
namespace {

/// A port that depends on this process, below those of connections.
unsigned own_port(unsigned offset) {
  return 12'000 + (static_cast<unsigned>(::getpid()) * 4 + offset) % 15'000;
}

TEST(Barrier, releases_all_only_once_all_have_arrived_each_time) {
  constexpr unsigned ranks = 4, times = 5;
  std::atomic<unsigned> arrived = 0;
  std::vector<std::jthread> all;
  for (unsigned rank = 0; rank < ranks; ++rank)
    all.emplace_back([&, rank](const std::stop_token& stop) {
      for (unsigned time = 1; time <= times; ++time) {
        if (time % ranks == rank) std::this_thread::sleep_for(std::chrono::milliseconds(120));
        ++arrived;
        wait_for_all({"127.0.0.1", own_port(0), rank, ranks}, stop);
        EXPECT_GE(arrived, time * ranks);
      }
    });
  for (auto& each : all) each.join();
  EXPECT_EQ(arrived, ranks * times);
}

TEST(Barrier, of_a_single_process_does_not_wait) { wait_for_all({"nowhere", 0, 0, 1}, {}); }

TEST(Barrier, ends_when_the_step_is_asked_to_end) {
  std::jthread waiting([&](const std::stop_token& stop) {
    EXPECT_THROW(wait_for_all({"127.0.0.1", own_port(1), 1, 2}, stop), std::runtime_error);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  waiting.request_stop();
}

TEST(Barrier, refuses_an_address_that_does_not_exist) {
  EXPECT_THROW(wait_for_all({"main.example", own_port(2), 1, 2}, {}), std::runtime_error);
}

}  // namespace
}  // namespace pipeline::dsl

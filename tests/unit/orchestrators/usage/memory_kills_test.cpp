#include "orchestrators/usage/memory_kills.hpp"

#include <gtest/gtest.h>

#include "core/file.hpp"

namespace pipeline::orchestrators::usage {
namespace {

class MemoryKillsTest : public ::testing::Test {
 protected:
  void kernel_says(const std::string& text) { core::write_file_atomically(counters, text); }
  MemoryKills kills() { return MemoryKills(counters, taken); }

  core::TemporaryFolder folder;
  const std::filesystem::path counters = folder.path() / "vmstat";
  MemoryKills::Account taken = 0;
};

TEST_F(MemoryKillsTest, earlier_ones_are_not_counted) {
  kernel_says("nr_free_pages 9\noom_kill 4\nnuma_hit 7\n");
  const auto attempt = kills();
  EXPECT_FALSE(attempt.take());
  kernel_says("nr_free_pages 11\noom_kill 4\nnuma_hit 8\n");
  EXPECT_FALSE(attempt.take());
  kernel_says("nr_free_pages 10\noom_kill 5\nnuma_hit 8\n");
  EXPECT_TRUE(attempt.take());
}

TEST_F(MemoryKillsTest, each_is_attributed_once) {
  kernel_says("oom_kill 4\n");
  const auto one = kills(), two = kills(), other = kills();
  kernel_says("oom_kill 6\n");
  EXPECT_TRUE(one.take());
  EXPECT_TRUE(two.take()) << "two processes were killed at once";
  EXPECT_FALSE(other.take()) << "further processes that died of SIGKILL were not killed for memory";
  EXPECT_FALSE(kills().take());
}

TEST_F(MemoryKillsTest, those_before_the_last_one_that_was_taken_are_settled) {
  kernel_says("oom_kill 4\n");
  const auto early = kills();
  kernel_says("oom_kill 9\n");  // Processes of others: `early` does not take these kills.
  const auto late = kills();
  EXPECT_FALSE(late.take());
  kernel_says("oom_kill 10\n");
  EXPECT_TRUE(late.take());
  EXPECT_FALSE(early.take()) << "a kill that is taken settles all before it";
}

TEST_F(MemoryKillsTest, a_kernel_that_does_not_count_is_no_evidence) {
  const auto missing = kills();
  kernel_says("nr_free_pages 9\n");
  const auto uncounted = kills();
  kernel_says("oom_kill 5\n");
  EXPECT_FALSE(missing.take());
  EXPECT_FALSE(uncounted.take());
}

struct GroupLayout {
  const char* name;
  const char* groups;    ///< Of /proc/self/cgroup.
  const char* counter;   ///< The file that exists below the mount point.
  const char* expected;  ///< Below it; empty: the machine's.
};

TEST_F(MemoryKillsTest, the_counter_of_the_processes_own_control_group_is_found) {
  for (const auto& layout : {
           GroupLayout{"version 1", "4:memory:/a/b\n0::/\n", "memory/a/b/memory.oom_control",
                       "memory/a/b/memory.oom_control"},
           GroupLayout{"several controllers", "3:cpu,memory,pids:/a\n",
                       "memory/a/memory.oom_control", "memory/a/memory.oom_control"},
           GroupLayout{"version 1 in a container that has the host's path",
                       "4:memory:/docker/0123\n", "memory/memory.oom_control",
                       "memory/memory.oom_control"},
           GroupLayout{"version 2", "0::/user.slice/a.scope\n",
                       "user.slice/a.scope/memory.events.local",
                       "user.slice/a.scope/memory.events.local"},
           GroupLayout{"the root of version 2, which does not count", "0::/\n", "cpu.stat", ""},
           GroupLayout{"no groups", "", "cpu.stat", ""},
       }) {
    const core::TemporaryFolder machine;
    const auto file = machine.path() / layout.counter;
    std::filesystem::create_directories(file.parent_path());
    core::write_file_atomically(file, "under_oom 0\noom_kill 0\n");
    core::write_file_atomically(machine.path() / "own", layout.groups);
    EXPECT_EQ(own_kill_counter(machine.path() / "own", machine.path()),
              *layout.expected ? machine.path() / layout.expected
                               : std::filesystem::path(MemoryKills::of_machine))
        << layout.name;
  }
}

}  // namespace
}  // namespace pipeline::orchestrators::usage

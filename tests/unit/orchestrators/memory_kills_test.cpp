#include "orchestrators/memory_kills.hpp"

#include <gtest/gtest.h>

#include "core/file.hpp"

namespace pipeline {
namespace {

TEST(MemoryKills, seen_are_those_since_it_was_made) {
  TemporaryFolder folder;
  const auto counters = folder.path() / "vmstat";
  write_file_atomically(counters, "nr_free_pages 9\noom_kill 4\nnuma_hit 7\n");
  const MemoryKills kills(counters);
  EXPECT_FALSE(kills.any());
  write_file_atomically(counters, "nr_free_pages 11\noom_kill 4\nnuma_hit 8\n");
  EXPECT_FALSE(kills.any());
  write_file_atomically(counters, "nr_free_pages 10\noom_kill 5\nnuma_hit 8\n");
  EXPECT_TRUE(kills.any());
  EXPECT_TRUE(kills.any()) << "asking does not use them up: two steps may have been killed at once";
  EXPECT_FALSE(MemoryKills(counters).any());
}

TEST(MemoryKills, a_kernel_that_does_not_count_is_no_evidence) {
  TemporaryFolder folder;
  const auto counters = folder.path() / "vmstat";
  const MemoryKills missing(counters);
  write_file_atomically(counters, "nr_free_pages 9\n");
  const MemoryKills uncounted(counters);
  write_file_atomically(counters, "oom_kill 5\n");
  EXPECT_FALSE(missing.any());
  EXPECT_FALSE(uncounted.any());
}

}  // namespace
}  // namespace pipeline

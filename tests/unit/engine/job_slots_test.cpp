#include "engine/run/job_slots.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

namespace pipeline::engine {
namespace {

TEST(JobSlots, attempts_that_keep_few_files_open_may_be_more_at_a_time) {
  rlimit own{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &own), 0);
  const rlimit small{848, own.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &small), 0);
  EXPECT_EQ(max_attempts(8), 100u);
  EXPECT_EQ(max_attempts(1), 800u);
  EXPECT_EQ(max_attempts(1000), 1u);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &own), 0);
}

}  // namespace
}  // namespace pipeline::engine

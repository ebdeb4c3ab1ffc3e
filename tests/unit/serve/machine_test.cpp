#include "serve/machine.hpp"

#include <gtest/gtest.h>

namespace pipeline::serve {
namespace {

TEST(BusyPart, is_the_part_of_the_time_in_which_processors_worked) {
  EXPECT_EQ(busy_part({100, 50}, {200, 75}), 0.75);
  EXPECT_EQ(busy_part({100, 50}, {200, 150}), 0.0);
}

TEST(BusyPart, survives_a_count_that_decreases) {
  EXPECT_EQ(busy_part({100, 50}, {200, 49}), 1.0);
  EXPECT_FALSE(busy_part({100, 50}, {100, 50}));
  EXPECT_FALSE(busy_part({100, 50}, {99, 49}));
}

}  // namespace
}  // namespace pipeline::serve

#include "core/version.hpp"

#include <gtest/gtest.h>

namespace pipeline::core {
namespace {

TEST(Version, is_compared_by_its_numbers) {
  EXPECT_TRUE(is_older("1.1.5+ds1", {1, 1, 12}));
  EXPECT_TRUE(is_older("1.0", {1, 1, 12}));
  EXPECT_FALSE(is_older("1.1.12", {1, 1, 12}));
  EXPECT_FALSE(is_older("1.2.0-rc1", {1, 1, 12}));
  EXPECT_FALSE(is_older("unknown", {1, 1, 12}));
  EXPECT_FALSE(is_older("", {1, 1, 12}));
}

}  // namespace
}  // namespace pipeline::core

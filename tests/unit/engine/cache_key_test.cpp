#include "engine/cache_key.hpp"

#include <gtest/gtest.h>

namespace pipeline::engine {
namespace {

TEST(CacheKey, has_the_users_version_of_a_step) {
  StepSpec step;
  step.name = "train";
  const auto before = key_parts("p", step, {}, {}, "image");
  step.version = "2024-01";
  const auto first = key_parts("p", step, {}, {}, "image");
  step.version = "2024-02";
  const auto second = key_parts("p", step, {}, {}, "image");
  EXPECT_NE(key_of(before), key_of(first));
  EXPECT_NE(key_of(first), key_of(second));
  EXPECT_EQ(differences(first, second), std::vector<std::string>{"version: 2024-01 -> 2024-02"});
}

}  // namespace
}  // namespace pipeline::engine

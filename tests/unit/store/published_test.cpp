#include <gtest/gtest.h>

#include "store/published.hpp"

namespace pipeline::store {
namespace {

class WrongReference : public testing::TestWithParam<const char*> {};

TEST_P(WrongReference, names_nothing) {
  EXPECT_FALSE(PublishedReference::parse(GetParam()).has_value());
}
INSTANTIATE_TEST_SUITE_P(Published, WrongReference,
                         testing::Values("model@", "model@x", "model@0", "model@-1", "model@1x",
                                         "model@1@2", "model@99999999999"));

TEST(PublishedReference, without_a_version_names_the_current_one) {
  const auto named = PublishedReference::parse("model");
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ(named->name, "model");
  EXPECT_EQ(named->version, 0u);
}

TEST(PublishedReference, has_the_number_of_its_version) {
  const auto named = PublishedReference::parse("model@12");
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ(named->name, "model");
  EXPECT_EQ(named->version, 12u);
}

}  // namespace
}  // namespace pipeline::store

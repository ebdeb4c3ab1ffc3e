#include "core/page_tokens.hpp"

#include <gtest/gtest.h>

namespace pipeline::core {
namespace {

TEST(PageTokens, that_come_again_are_refused_also_after_others) {
  PageTokens tokens(10);
  EXPECT_TRUE(tokens.accept("a"));
  EXPECT_TRUE(tokens.accept("b"));
  EXPECT_FALSE(tokens.accept("a"));
  EXPECT_TRUE(tokens.accept(""));
  EXPECT_TRUE(tokens.accept(""));
}

TEST(PageTokens, that_are_long_are_refused) {
  PageTokens tokens(10);
  EXPECT_TRUE(tokens.accept("0123456789"));
  EXPECT_FALSE(tokens.accept("0123456789a"));
}

TEST(PageTokens, of_more_than_ten_thousand_pages_are_refused) {
  PageTokens tokens(10);
  for (int page = 0; page < 10'000; ++page) ASSERT_TRUE(tokens.accept(std::to_string(page)));
  EXPECT_FALSE(tokens.accept("one more"));
  EXPECT_FALSE(tokens.accept(""));
}

}  // namespace
}  // namespace pipeline::core

#include "core/tail_buffer.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/joined.hpp"
#include "core/scope_guard.hpp"

namespace pipeline::core {
namespace {

TEST(TailBuffer, keeps_the_end_in_bounded_memory) {
  TailBuffer tail(4);
  tail.add("12345678");
  EXPECT_EQ(tail.text(), "12345678");
  tail.add("9");
  EXPECT_EQ(tail.text(), "6789");
  tail.add("");
  EXPECT_EQ(tail.text(), "6789");
}

TEST(Joined, separators_stand_between_texts) {
  EXPECT_EQ(joined(std::vector<std::string>{}, ", "), "");
  EXPECT_EQ(joined(std::vector<std::string>{"", "a", ""}, ", "), ", a, ");
  EXPECT_EQ(joined(std::vector{1, 2}, "+", [](int each) { return std::to_string(each); }), "1+2");
}

TEST(ScopeGuard, calls_its_function_at_the_end_of_the_scope) {
  int calls = 0;
  {
    const ScopeGuard guard([&] { ++calls; });
    EXPECT_EQ(calls, 0);
  }
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace pipeline::core

#include <pipeline/shared_list.hpp>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pipeline {
namespace {

using testing::ElementsAre;

TEST(SharedList, copies_share_their_items_until_one_is_changed) {
  const SharedList<std::string> list{"a", "b"};
  auto copy = list;
  EXPECT_EQ(copy.begin(), list.begin());
  copy.push_back("c");
  EXPECT_THAT(list, ElementsAre("a", "b"));
  EXPECT_THAT(copy, ElementsAre("a", "b", "c"));
  auto other = list;
  other[0] = "A";
  other.back() = "B";
  EXPECT_THAT(list, ElementsAre("a", "b"));
  EXPECT_THAT(other, ElementsAre("A", "B"));
}

TEST(SharedList, reads_like_a_vector) {
  SharedList<std::string> list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.begin(), list.end());
  EXPECT_THROW(list.at(0), std::out_of_range);
  list.emplace_back("a");
  list = {{"b"}, {"c"}};
  EXPECT_EQ(list.size(), 2u);
  EXPECT_EQ(list.at(1), "c");
  EXPECT_EQ(list, SharedList<std::string>(std::vector<std::string>{"b", "c"}));
  EXPECT_NE(list, SharedList<std::string>());
  list.clear();
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list, SharedList<std::string>());
}

}  // namespace
}  // namespace pipeline

#include <pipeline/rare.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pipeline/spec.hpp>

namespace pipeline {
namespace {

using testing::ElementsAre;

TEST(RareList, copies_have_items_of_their_own) {
  RareList<std::string> list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.begin(), list.end());
  list.push_back("a");
  auto copy = list;
  copy.push_back("b");
  EXPECT_THAT(list, ElementsAre("a"));
  EXPECT_THAT(copy, ElementsAre("a", "b"));
  list = std::move(copy);
  EXPECT_EQ(list.back(), "b");
  EXPECT_EQ(list.size(), 2u);
  list.clear();
  EXPECT_TRUE(list.empty());
}

TEST(RareMap, reads_as_an_empty_map_until_it_is_written_to) {
  using Numbers = std::map<std::string, int>;
  RareMap<Numbers> map;
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.find("a"), map.end());
  const auto copy = map;
  map["a"] = 1;
  EXPECT_EQ(map.at("a"), 1);
  EXPECT_EQ(*map, (Numbers{{"a", 1}}));
  EXPECT_EQ(map, (RareMap<Numbers>{{"a", 1}}));
  EXPECT_TRUE(copy.empty());
  map.clear();
  EXPECT_EQ(map, copy);
}

/// A plan of 100,000 steps has as many of them: a member of 100 bytes is 10 MB.
TEST(StepSpec, takes_little_memory) {
  EXPECT_LE(sizeof(StepSpec), 728u);
  EXPECT_LE(sizeof(InputSpec), 88u);
}

}  // namespace
}  // namespace pipeline

#include <pipeline/rare.hpp>

#include <map>
#include <optional>
#include <stdexcept>
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

TEST(RareText, reads_as_an_empty_text_until_it_is_set) {
  RareText text;
  EXPECT_TRUE(text.empty());
  EXPECT_EQ(text, "");
  text = "a";
  const RareText copy = text;
  text = std::string();
  EXPECT_TRUE(text.empty());
  EXPECT_EQ(copy, std::string("a"));
  EXPECT_EQ(copy->size(), 1u);
  EXPECT_NE(copy, text);
  EXPECT_LE(sizeof(RareText), sizeof(void*));
}

TEST(Template, keeps_its_parts_in_order) {
  using Reference = Template::Reference;
  const std::string text("a\0b", 3);
  const Reference reference{Template::Placeholder::node_count, ""};
  const Template both{{text, Reference{Template::Placeholder::input, "data"}, reference}};
  EXPECT_EQ(both.parts.size(), 3u);
  EXPECT_EQ(std::get<std::string>(both.parts[0]), text);
  EXPECT_EQ(std::get<Reference>(both.parts[1]).name, "data");
  EXPECT_EQ(std::get<Reference>(both.parts[2]), reference);
  EXPECT_THROW((void)both.parts.at(3), std::out_of_range);
  EXPECT_EQ(both.parts.only_text(), std::nullopt);
  EXPECT_EQ(Template{{text}}.parts.only_text(), text);
  EXPECT_EQ(Template{{reference}}.parts.only_text(), std::nullopt);
  EXPECT_TRUE(Template{}.parts.empty());
}

/// A plan of 100,000 steps has as many of them: a member of 100 bytes is 10 MB.
TEST(StepSpec, takes_little_memory) {
  EXPECT_LE(sizeof(StepSpec), 400u);
  EXPECT_LE(sizeof(InputSpec), 96u);
}

}  // namespace
}  // namespace pipeline

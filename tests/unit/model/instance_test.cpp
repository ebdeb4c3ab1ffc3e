#include "model/instance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/identifier.hpp"

namespace pipeline::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(InstanceNames, have_each_value) {
  InstanceNames names("train");
  EXPECT_EQ(names.next({{"c", 0.1}, {"kernel", "rbf"}}), "train.c-0.1.kernel-rbf");
  EXPECT_EQ(names.next({{"c", -1}, {"kernel", true}}), "train.c--1.kernel-true");
  EXPECT_EQ(InstanceNames("plain").next({}), "plain.0");
}

TEST(InstanceNames, are_valid_whatever_the_values_are) {
  InstanceNames names("train");
  const std::vector<std::string> values{
      "a/b", "../x", "", "ä b", "$(rm -rf /)", std::string(500, 'x'), std::string(501, 'x')};
  for (const auto& value : values) {
    const auto name = names.next({{"file", value}});
    EXPECT_TRUE(core::is_name(name)) << name;
    EXPECT_EQ(base_name(name), "train");
  }
}

TEST(InstanceNames, differ_where_values_look_alike) {
  InstanceNames names("t");
  const auto first = names.next({{"a", "1.b-2"}, {"b", "3"}});
  EXPECT_EQ(first, "t.a-1.b-2.b-3");
  EXPECT_NE(names.next({{"a", "1"}, {"b", "2.b-3"}}), first);
  EXPECT_NE(names.next({{"a", "x/y"}, {"b", ""}}), names.next({{"a", "x_y"}, {"b", ""}}));
  EXPECT_NE(names.next({{"a", 1}, {"b", ""}}), names.next({{"a", "1"}, {"b", ""}}));
}

TEST(InstanceNames, differ_where_the_digests_of_the_values_begin_alike) {
  InstanceNames names("t");
  const auto first = names.next({{"a", "!&((!#"}}), second = names.next({{"a", "!)*&,&"}});
  EXPECT_EQ(first, "t.a-______-426e1bd0") << "the digests of both begin so";
  EXPECT_NE(second, first);
  EXPECT_EQ(second.size(), first.size());
}

TEST(Selectors, are_parsed_or_refused) {
  EXPECT_FALSE(parse_selector("train")->has_brackets);
  EXPECT_TRUE(parse_selector("train[*]")->all);
  EXPECT_EQ(parse_selector("train[2]")->index, 2u);
  EXPECT_TRUE(parse_selector("train[=]")->same);
  const auto mixed = *parse_selector("train[c=0.1, kernel=*, =]");
  EXPECT_TRUE(mixed.same);
  EXPECT_THAT(mixed.axes, ElementsAre(std::pair("c", "0.1"), std::pair("kernel", "*")));
  for (const auto* wrong :
       {"", "[*]", "train[", "train[]", "train[c]", "train[*]x", "train[=1]", "train[c=1,]"})
    EXPECT_FALSE(parse_selector(wrong)) << wrong;
}

TEST(Selectors, compare_numbers_as_numbers) {
  EXPECT_TRUE(stands_for("0.10", 0.1));
  EXPECT_TRUE(stands_for("1", 1.0));
  EXPECT_TRUE(stands_for("rbf", "rbf"));
  EXPECT_TRUE(stands_for("true", true));
  EXPECT_FALSE(stands_for("1.0", "1"));
  EXPECT_FALSE(stands_for("", 0));
}

TEST(Picking, finds_steps_by_what_a_user_calls_them) {
  struct Known {
    std::string name;
    std::map<std::string, nlohmann::json> values;
  };
  const std::vector<Known> steps{{"load", {{"seed", 1}}},
                                 {"train.c-1.k-a", {{"c", 1}, {"k", "a"}}},
                                 {"train.c-1.k-b", {{"c", 1}, {"k", "b"}}},
                                 {"train.c-2.k-a", {{"c", 2}, {"k", "a"}}}};
  const auto picked = [&](const char* text) {
    return pick(text, steps.size(), [&](std::size_t i) {
      return Candidate{steps[i].name, [&, i](const std::string& axis) -> const nlohmann::json* {
                         const auto found = steps[i].values.find(axis);
                         return found == steps[i].values.end() ? nullptr : &found->second;
                       }};
    });
  };
  EXPECT_THAT(picked("load"), ElementsAre(0));
  EXPECT_THAT(picked("train"), ElementsAre(1, 2, 3));
  EXPECT_THAT(picked("train[*]"), ElementsAre(1, 2, 3));
  EXPECT_THAT(picked("train[c=1]"), ElementsAre(1, 2));
  EXPECT_THAT(picked("train[c=1,k=b]"), ElementsAre(2));
  EXPECT_THAT(picked("train[2]"), ElementsAre(3));
  EXPECT_THAT(picked("train.c-2.k-a"), ElementsAre(3));
  for (const auto* none : {"train[3]", "train[c=3]", "train[x=1]", "load[0]", "trai", "train.c-2"})
    EXPECT_THAT(picked(none), IsEmpty()) << none;
}

}  // namespace
}  // namespace pipeline::model

#include "core/bounded_json.hpp"

#include <gtest/gtest.h>

#include <limits>

#include <nlohmann/json.hpp>

namespace pipeline::core {
namespace {

std::string nested(unsigned depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(BoundedJson, text_that_is_nested_deeper_or_longer_than_its_limits_is_refused) {
  EXPECT_FALSE(parse_json(nested(500)).is_discarded());
  EXPECT_TRUE(parse_json(nested(501)).is_discarded());
  EXPECT_TRUE(parse_json(nested(60'000)).is_discarded());
  EXPECT_TRUE(parse_json(std::string(60'000, '[')).is_discarded());
  EXPECT_TRUE(parse_json(R"({"a": {"b": [1]}})", {.depth = 2}).is_discarded());
  EXPECT_FALSE(parse_json(R"({"a": {"b": [1]}})", {.depth = 3}).is_discarded());
  EXPECT_TRUE(parse_json("[1, 2]", {.bytes = 5}).is_discarded());
  EXPECT_FALSE(parse_json("[1, 2]", {.bytes = 6}).is_discarded());
}

TEST(BoundedJson, brackets_in_strings_and_side_by_side_add_no_depth) {
  EXPECT_EQ(parse_json(R"(["[[[[[[", "\"[[[[", "\\", [], {}, []])", {.depth = 2}).size(), 6u);
  EXPECT_TRUE(parse_json("]]]]").is_discarded());
  EXPECT_TRUE(parse_json("\"[").is_discarded());
  EXPECT_TRUE(parse_json("\"\\").is_discarded());
  EXPECT_TRUE(parse_json("").is_discarded());
}

TEST(BoundedJson, an_integer_has_both_limits_whatever_its_sign) {
  EXPECT_EQ(integer_within(parse_json("10"), 10, 20), 10);
  EXPECT_EQ(integer_within(parse_json("-5"), -5, -1), -5);
  for (const auto* text : {"9", "21", "-10", "18446744073709551615"})
    EXPECT_THROW(integer_within(parse_json(text), 10, 20), nlohmann::json::exception) << text;
  EXPECT_THROW(integer_within(parse_json("5"), -5, -1), nlohmann::json::exception);
}

TEST(BoundedJson, an_integer_outside_of_its_types_range_is_refused) {
  EXPECT_EQ(integer_of<int>(parse_json("-5")), -5);
  EXPECT_EQ(integer_of<unsigned>(parse_json("4294967295")), 4294967295u);
  EXPECT_EQ(integer_of<std::uint64_t>(parse_json("18446744073709551615")), ~std::uint64_t{0});
  EXPECT_EQ(integer_of<std::int64_t>(parse_json("-9223372036854775808")),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(integer_of<std::size_t>(nlohmann::json(7)), 7u);
  for (const auto* text : {"1.0", "1e91", "\"1\"", "null", "true", "[]", "2147483648",
                           "-2147483649", "18446744073709551615"})
    EXPECT_THROW(integer_of<int>(parse_json(text)), nlohmann::json::exception) << text;
  for (const auto* text : {"-1", "1e91", "4294967296", "18446744073709551616"})
    EXPECT_THROW(integer_of<unsigned>(parse_json(text)), nlohmann::json::exception) << text;
  EXPECT_THROW(integer_of<std::uint64_t>(nlohmann::json(-1)), nlohmann::json::exception);
}

TEST(BoundedJson, an_integer_outside_of_the_given_range_is_refused) {
  EXPECT_EQ(integer_within(parse_json("2"), 2, 5), 2);
  EXPECT_EQ(integer_within(parse_json("-5"), -5, -2), -5);
  for (const auto* text : {"1", "6", "-3", "18446744073709551615"})
    EXPECT_THROW(integer_within(parse_json(text), 2, 5), nlohmann::json::exception) << text;
  EXPECT_THROW(integer_within(parse_json("0"), -5, -2), nlohmann::json::exception);
}

TEST(BoundedJson, a_short_text_with_too_many_values_is_refused) {
  std::string text = "[";
  for (int i = 0; i < 4'100'000; ++i) text += "[],";
  EXPECT_TRUE(parse_json(text + "0]").is_discarded());
  EXPECT_FALSE(parse_json("[" + std::string(5'000'000, ' ') + "[1,2]]").is_discarded());
}

TEST(BoundedJson, commas_and_brackets_in_strings_are_not_values) {
  const auto text = "[\"" + std::string(2'100'000, ',') + std::string(2'100'000, '[') + "\\\"\"]";
  EXPECT_FALSE(parse_json(text).is_discarded());
}

TEST(BoundedJson, the_fault_of_a_text_is_found) {
  EXPECT_EQ(fault_of_json("{\"a\": 1,\n\"b\": }"), "the fault is in line 2");
  EXPECT_EQ(fault_of_json(""), "the fault is in line 1");
  EXPECT_EQ(fault_of_json("[1, 1e400]"), "the number '1e400' is too large for 64 bits");
  EXPECT_EQ(fault_of_json("[[1]]", {.depth = 1}), "it is too large or nested too deeply");
}

}  // namespace
}  // namespace pipeline::core

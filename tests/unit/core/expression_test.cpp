#include "core/expression.hpp"

#include <gtest/gtest.h>

#include <map>

namespace pipeline::core {
namespace {

using Values = std::map<std::string, nlohmann::json>;

Expression::Lookup in(const Values& values) {
  return [&values](const Expression::Variable& variable) -> const nlohmann::json* {
    const auto found = values.find(variable.name);
    return found == values.end() ? nullptr : &found->second;
  };
}

std::optional<bool> value_of(std::string_view text, const Values& values = {}) {
  return Expression::parse(text).evaluate(in(values));
}

/// Returns `OFFSET+LENGTH: MESSAGE; SUGGESTION`.
std::string error_of(std::string_view text, const Values& values = {}) {
  try {
    Expression::parse(text).check(in(values));
  } catch (const ExpressionError& error) {
    return std::to_string(error.offset) + "+" + std::to_string(error.length) + ": " +
           error.message + (error.suggestion.empty() ? "" : "; " + error.suggestion);
  }
  return "no error";
}

TEST(Expression, text_that_is_not_an_expression_is_refused_with_the_position) {
  EXPECT_EQ(error_of(""), "0+1: the expression ends where a value is expected");
  EXPECT_EQ(error_of("1 <"), "2+1: the expression ends where a value is expected");
  EXPECT_EQ(error_of("1 = 2"), "2+1: `=` is not an operator here; write `==`");
  EXPECT_EQ(error_of("${a} && ${b}"), "5+2: `&&` is not an operator here; write `and`");
  EXPECT_EQ(error_of("!${a}"), "0+1: `!` is not an operator here; write `not`");
  EXPECT_EQ(error_of("1 < 2 < 3"), "6+1: a comparison has two sides; write `A < B and B < C`");
  EXPECT_EQ(error_of("(1 < 2"), "0+1: this `(` is not closed");
  EXPECT_EQ(error_of("1 < 2)"), "5+1: `)` stands where `and`, `or` or the end is expected");
  EXPECT_EQ(error_of("1 < 2 3"), "6+1: `3` stands where `and`, `or` or the end is expected");
  EXPECT_EQ(error_of("1.2.3 < 2"), "0+5: '1.2.3' is not a number, such as 0.9, -1 or 1e-3");
  EXPECT_EQ(error_of("1 == 'b"), "5+1: this text has no closing quote");
  EXPECT_EQ(error_of("${a == 1"),
            "0+1: a value of the pipeline is written `${NAME}`; as in "
            "`${params.X}` or `${STEP.OUTPUT.MEMBER}`");
  EXPECT_EQ(error_of("True"), "0+4: 'True' is not a value; write `true`");
  EXPECT_EQ(error_of("lr > 1").substr(0, 63),
            "0+2: 'lr' is not a value; write `'lr'` for a text, `${params.lr");
  EXPECT_EQ(error_of(std::string(10'000, '(')).substr(0, 4), "25+1")
      << "the parser does not exhaust the stack";
}

TEST(Expression, a_chain_that_would_exhaust_the_stack_is_refused) {
  std::string chain = "false";
  for (int i = 0; i < 1'000; ++i) chain += " or false";
  EXPECT_EQ(value_of(chain), false);
  for (int i = 0; i < 100'000; ++i) chain += " or false";
  EXPECT_TRUE(error_of(chain).ends_with("has more than 4000 operators and values"));
}

TEST(Expression, types_that_do_not_fit_are_refused_though_other_values_are_unknown) {
  EXPECT_EQ(
      error_of("${lr}", {{"lr", 0.5}}),
      "0+5: the condition must be true or false, but ${lr} is a number; compare it: `${lr} > 0`");
  EXPECT_EQ(error_of("${x} and 'a'"),
            "9+3: each side of `and` must be true or false, but 'a' is a text; compare it: `'a' == "
            "'yes'`");
  EXPECT_EQ(
      error_of("false and 1"),
      "10+1: each side of `and` must be true or false, but 1 is a number; compare it: `1 > 0`");
  EXPECT_EQ(error_of("${x} or ${lr} == 'a'", {{"lr", 1}}),
            "8+12: ${lr} is a number, but 'a' is a text; compare values of one type");
  EXPECT_EQ(error_of("${lr} > 0.5", {{"lr", "NaN"}}),
            "0+11: ${lr} is NaN, but 0.5 is a number; compare values of one type");
  EXPECT_EQ(error_of("${x} < true"),
            "0+11: true and false have no order: true is compared by `<`; numbers and texts are "
            "compared by `<`");
  EXPECT_EQ(error_of("${m} == 1", {{"m", {{"a", 1}}}}),
            "0+4: ${m} is a map, not a number, a text, true or false; name one of its members: "
            "`${m.MEMBER}`");
  EXPECT_EQ(error_of("${m} == 1", {{"m", nullptr}}),
            "0+4: ${m} is null, not a number, a text, true or false");
  EXPECT_EQ(error_of("${x} > 1 and not ${y}"), "no error");
}

TEST(Expression, comparisons_and_operators_have_their_value) {
  EXPECT_EQ(value_of("0.95 > 0.9"), true);
  EXPECT_EQ(value_of("1 == 1.0 and 1 <= 1 and -1 != 1e-3"), true);
  EXPECT_EQ(value_of("'a' < \"b\""), true);
  EXPECT_EQ(value_of("true == false"), false);
  EXPECT_EQ(value_of("false or true and false"), false) << "`and` binds closer than `or`";
  EXPECT_EQ(value_of("(false or true) and not false"), true);
  EXPECT_EQ(value_of("not not true"), true);
  EXPECT_EQ(value_of("not 1 > 2"), true);
  EXPECT_EQ(value_of("${a.b} >= 10", {{"a.b", 10}}), true);
}

TEST(Expression, an_unknown_value_does_not_matter_where_the_others_decide) {
  EXPECT_EQ(value_of("${x} > 1"), std::nullopt);
  EXPECT_EQ(value_of("${x} > 1 and false"), false);
  EXPECT_EQ(value_of("true or ${x}"), true);
  EXPECT_EQ(value_of("not ${x}"), std::nullopt);
  EXPECT_EQ(value_of("${x} or false"), std::nullopt);
}

TEST(Expression, variables_have_names_and_positions) {
  const auto expression = Expression::parse("${a} == 1 and ${b[c=1].d} > 2");
  ASSERT_EQ(expression.variables().size(), 2u);
  EXPECT_EQ(expression.variables()[1].name, "b[c=1].d");
  EXPECT_EQ(expression.variables()[1].offset, 14u);
}

}  // namespace
}  // namespace pipeline::core

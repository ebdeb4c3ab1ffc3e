#include "yaml/document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pipeline::yaml {
namespace {

using testing::HasSubstr;

struct Read {
  std::optional<core::Value> root;
  settings::Diagnostics diagnostics;
};
Read read(std::string_view text) {
  Read result;
  result.root = parse_yaml(text, result.diagnostics);
  return result;
}
std::string first_error(std::string_view text) {
  const auto result = read(text);
  return result.diagnostics.empty()
             ? ""
             : result.diagnostics[0].code + ": " + result.diagnostics[0].message;
}

void expect_span(const core::Value& value, unsigned line, unsigned column, unsigned length) {
  EXPECT_EQ(value.span.line, line) << value.scalar;
  EXPECT_EQ(value.span.column, column) << value.scalar;
  EXPECT_EQ(value.span.length, length) << value.scalar;
}

TEST(YamlDocument, every_scalar_knows_its_place) {
  const auto root = *read(
                         "a: plain text # c\nb: [x, \"q\\\"r\", 'it''s']\nc: |\n  one\n  "
                         "two\nd:\ne: &anchor v\nf: ~\n\xc3\xa4: \xc3\xb6\n")
                         .root;
  expect_span(*root.find("a"), 1, 4, 10);
  expect_span(*root.find("b"), 2, 4, 1);
  expect_span(root.find("b")->items[0], 2, 5, 1);
  expect_span(root.find("b")->items[1], 2, 8, 6);
  expect_span(root.find("b")->items[2], 2, 16, 7);
  expect_span(*root.find("c"), 3, 4, 1);
  expect_span(*root.find("d"), 6, 1, 1);  // nothing is written: the key's place
  expect_span(*root.find("f"), 8, 4, 1);
  expect_span(*root.find("\xc3\xa4"), 9, 5, 2);
  EXPECT_EQ(root.find("c")->scalar, "one\ntwo\n");
  EXPECT_EQ(root.find("b")->items[2].scalar, "it's");
}

TEST(YamlDocument, an_omitted_value_has_the_place_of_its_key_also_before_a_key_like_null) {
  const auto root = *read("a:\nnullable: 1\nb:\n~x: 1\nc: null # none\n").root;
  expect_span(*root.find("a"), 1, 1, 1);
  expect_span(*root.find("b"), 3, 1, 1);
  expect_span(*root.find("c"), 5, 4, 1);
}

TEST(YamlDocument, quoted_tagged_and_block_scalars_are_strings) {
  const auto root = *read("a: '5'\nb: 5\nc: !!str 5\nd: |\n  5\n").root;
  EXPECT_TRUE(root.find("a")->quoted);
  EXPECT_FALSE(root.find("b")->quoted);
  EXPECT_TRUE(root.find("c")->quoted);
  EXPECT_TRUE(root.find("d")->quoted);
}

TEST(YamlDocument, aliases_are_copies_at_their_own_place) {
  const auto root = *read("a: &x {k: [1, 2]}\nb: *x\n").root;
  EXPECT_EQ(root.find("b")->find("k")->items.size(), 2u);
  expect_span(*root.find("b"), 2, 4, 1);
}

TEST(YamlDocument, duplicate_keys_are_refused_in_small_and_large_maps) {
  EXPECT_THAT(first_error("a: 1\nb: 2\na: 3\n"),
              HasSubstr("duplicate-key: the key 'a' is given twice"));
  std::string large;
  for (int i = 0; i < 100; ++i) large += "k" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(first_error(large), "");
  EXPECT_THAT(first_error(large + "k7: 2\n"), HasSubstr("'k7' is given twice"));
}

TEST(YamlDocument, of_repeated_keys_the_first_stays_and_the_order_is_kept) {
  for (const int others : {2, 100}) {
    std::string text = "a: 1\na: 2\n";
    for (int i = 0; i < others; ++i) text += "k" + std::to_string(i) + ": 1\na: 3\n";
    const auto result = read(text);
    EXPECT_EQ(result.diagnostics.size(), static_cast<std::size_t>(others) + 1);
    const auto& members = result.root->members;
    ASSERT_EQ(members.size(), static_cast<std::size_t>(others) + 1);
    EXPECT_EQ(members[0].second.scalar, "1");
    for (int i = 0; i < others; ++i)
      EXPECT_EQ(members[static_cast<std::size_t>(i) + 1].first.scalar, "k" + std::to_string(i));
    for (const auto& each : result.diagnostics)
      EXPECT_THAT(each.notes, testing::ElementsAre("first given in line 1"));
  }
}

TEST(YamlDocument, an_alias_bomb_is_refused_by_its_size) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 0; j < 8; ++j) bomb += ", " + before;
    bomb += "]\n";
  }
  EXPECT_THAT(first_error(bomb), HasSubstr("alias-bomb"));
}

TEST(YamlDocument, aliases_of_a_long_text_are_refused_by_their_bytes) {
  std::string bomb = "a: &a " + std::string(200'000, 'x') + "\nb: [*a";
  for (int i = 0; i < 60'000; ++i) bomb += ", *a";
  EXPECT_THAT(first_error(bomb + "]\n"),
              testing::AllOf(HasSubstr("alias-bomb"), HasSubstr("MiB of text")));
}

TEST(YamlDocument, very_deep_nesting_is_refused) {
  constexpr int deep = 100'000;
  const auto repeated = [](std::string_view part, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += part;
    return text;
  };
  for (const char* part : {"[", "{", "- ", "? ", "{a: ", "[[[[\n", "&a [", "!x {"})
    EXPECT_THAT(first_error(repeated(part, deep)), HasSubstr("too-deep")) << part;
  std::string block;
  for (int i = 0; i < 1000; ++i) block += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_THAT(first_error(block), HasSubstr("too-deep"));
  EXPECT_EQ(first_error(repeated("[", 90) + repeated("]", 90)), "");
}

TEST(YamlDocument, brackets_in_quotes_are_text_however_many) {
  const std::string many(5000, '[');
  for (const auto& text : {"a: \"" + many + "\"", "a: '" + many + "'", "a: ['" + many + "']",
                           "a: \"\\\"" + many + "\"", "'" + many.substr(0, 1001) + "': it's"})
    EXPECT_EQ(first_error(text), "") << text.substr(0, 12);
  for (const auto& text : {"a: 'x' " + many, "a: ['', " + many})
    EXPECT_THAT(first_error(text), HasSubstr("too-deep")) << text.substr(0, 12);
}

TEST(YamlDocument, aliases_count_for_the_limit_of_depth) {
  std::string text = "a0: &a0 [x]\n";
  for (int i = 1; i < 150; ++i)
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) +
            "]\n";
  EXPECT_THAT(first_error(text), HasSubstr("too-deep"));
}

TEST(YamlDocument, large_texts_are_refused) {
  settings::Diagnostics diagnostics;
  EXPECT_FALSE(parse_yaml("a: 12345678", diagnostics, {.bytes = 10}));
  EXPECT_EQ(diagnostics[0].code, "too-large");
  EXPECT_THAT(first_error("a: [" + std::string((1u << 20) + 10, ' ') + "]"),
              HasSubstr("longer than 1 MiB"));
}

TEST(YamlDocument, bytes_that_are_no_text_are_refused) {
  // yaml-cpp would take 0x04 for the end of its input.
  EXPECT_THAT(first_error(std::string_view("a: 1\n\x04"
                                           "b: 2\n")),
              HasSubstr("0x04"));
  EXPECT_THAT(first_error(std::string_view("a: \0", 4)), HasSubstr("0x00"));
  EXPECT_THAT(first_error("a: \xff"), HasSubstr("not-utf8"));
  EXPECT_THAT(first_error("\xff\xfe"
                          "a"),
              HasSubstr("UTF-16"));
}

TEST(YamlDocument, a_quote_that_is_never_closed_is_refused) {
  for (const char* text : {"a: \"b\nc: d\n", "a: 'b\n\nc: d\n", "\"a: 1\n"})
    EXPECT_THAT(first_error(text), HasSubstr("never closed")) << text;
  EXPECT_EQ(first_error("a: \"b\n  c\"\nd: 'e\n  ''f'\n"), "");
}

TEST(YamlDocument, invalid_keys_are_refused) {
  EXPECT_THAT(first_error("? [a]\n: b\n"), HasSubstr("bad-key"));
  EXPECT_THAT(first_error("{}: b\n"), HasSubstr("bad-key"));
  EXPECT_THAT(first_error("~: b\n"), HasSubstr("bad-key"));
  EXPECT_THAT(first_error("<<: {a: b}\n"), HasSubstr("merge-key"));
}

TEST(YamlDocument, lists_and_maps_that_follow_each_other_are_not_a_second_document) {
  EXPECT_THAT(first_error("- a\nb: 1\n"), HasSubstr("cannot be mixed"));
  EXPECT_THAT(first_error("a: 1\n---\nb: 1\n"), HasSubstr("second document"));
  EXPECT_EQ(first_error("---\na: 1\n...\n"), "");
}

}  // namespace
}  // namespace pipeline::yaml

#include "spec/env_file.hpp"

#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "support/error_text.hpp"

namespace pipeline::spec {
namespace {

std::string env_error(std::string_view text) {
  return test::error_text([&] { parse_env(text, "/p/.env"); });
}

TEST(EnvFile, values_are_words_or_quoted_texts) {
  const auto values = parse_env(
      "\xef\xbb\xbf# a comment\r\n\r\nA=1\r\n  export B = two words   # a comment\n"
      "C='${A} \"x\" # y'\nD=\"a\\tb \\\"q\\\" \\$5\\\\ \\d\" # "
      "e\nE=\nF=a#b\nG='two\nlines'\nH=$5=6",
      "/p/.env");
  const StringMap expected{
      {"A", "1"}, {"B", "two words"}, {"C", "${A} \"x\" # y"}, {"D", "a\tb \"q\" $5\\ \\d"},
      {"E", ""},  {"F", "a#b"},       {"G", "two\nlines"},     {"H", "$5=6"}};
  EXPECT_EQ(values, expected);
  EXPECT_TRUE(parse_env("", "/p/.env").empty());
}

TEST(EnvFile, a_wrong_line_has_its_position_and_shows_no_value) {
  EXPECT_TRUE(env_error("A=1\nTOKEN hush\n").starts_with("/p/.env:2:7: error: expected `=`"));
  EXPECT_TRUE(
      env_error("A=1\n\n  1B=hush").starts_with("/p/.env:3:3: error: this is not the name"));
  for (const auto* text :
       {"TOKEN hush\n", "KEY=begin\nhush\n", "1B=hush", "A='hush", "A='hush' hush", "A=hush${B}",
        "A=\"hush ${B}\"", "A=hush\nA=hush", "=hush"}) {
    EXPECT_TRUE(env_error(text).starts_with("/p/.env:")) << env_error(text);
    EXPECT_EQ(env_error(text).find("hush"), std::string::npos) << env_error(text);
  }
  EXPECT_NE(env_error("A='1\nB=2").find("/p/.env:1:3: error: the value of A has no closing quote"),
            std::string::npos);
}

TEST(EnvFile, a_refused_reference_in_a_value_of_several_lines_is_the_only_error) {
  const auto text = env_error("A=\"one\n${HOME}\nthree\"\nB=2\n");
  EXPECT_TRUE(text.starts_with("/p/.env:2:1: error: the value of A contains `${`")) << text;
  EXPECT_EQ(text.find("/p/.env:3:"), std::string::npos) << text;
}

TEST(EnvFile, a_value_with_a_byte_0_is_refused) {
  using namespace std::string_literals;
  for (const auto& text : {"A=1\nB=hu\0sh\n"s, "A=1\nB='u\0sh'\n"s})
    EXPECT_TRUE(env_error(text).starts_with("/p/.env:2:5: error: the value of B contains a byte 0"))
        << env_error(text);
}

TEST(EnvFile, all_wrong_lines_are_reported_at_once) {
  const auto text = env_error("A\nB=1\nB=2\nC='x' y\n");
  for (const auto* part : {".env:1:2: ", ".env:3:1: ", ".env:4:7: "})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace
}  // namespace pipeline::spec

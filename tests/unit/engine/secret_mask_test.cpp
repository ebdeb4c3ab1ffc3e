#include "engine/attempt/secret_mask.hpp"

#include <gtest/gtest.h>

#include <random>

#include "core/base64.hpp"

namespace pipeline::engine {
namespace {

std::string masked(std::vector<std::string> secrets, std::vector<std::string> pieces) {
  SecretMask mask(std::move(secrets));
  std::string shown;
  for (const auto& piece : pieces) shown += mask.feed(piece);
  return shown + mask.finish();
}

TEST(SecretMask, hides_a_secret_within_a_line) {
  EXPECT_EQ(masked({"hunter2"}, {"the password is hunter2!"}), "the password is ***!");
}

TEST(SecretMask, takes_little_memory_without_secrets) {
  EXPECT_LT(sizeof(SecretMask), 128U);  // Each of thousands of attempts that wait has two.
  EXPECT_EQ(masked({"", "ab"}, {"abc", "ab"}), "abcab");
}

TEST(SecretMask, hides_a_secret_that_is_cut_anywhere) {
  const std::string text = "a hunter2 b";
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(masked({"hunter2"}, {text.substr(0, cut), text.substr(cut)}), "a *** b") << cut;
}

TEST(SecretMask, prefers_the_longer_of_two_secrets_with_the_same_beginning) {
  EXPECT_EQ(masked({"token", "token-extended"}, {"tok", "en-exten", "ded"}), "***");
  EXPECT_EQ(masked({"token", "token-extended"}, {"token-ext", "!"}), "***-ext!");
}

TEST(SecretMask, hides_a_secret_of_several_lines) {
  EXPECT_EQ(masked({"-----KEY\nabc\n"}, {"x-----KEY\n", "abc\ny"}), "x***y");
}

TEST(SecretMask, hides_each_longer_line_of_a_secret) {
  const std::string key = "-----BEGIN KEY-----\nMIIEvQIBADAN\nabc\n-----END KEY-----\n";
  EXPECT_EQ(masked({key}, {"1: MIIEvQIBADAN", " 2: -----END KEY-----"}), "1: *** 2: ***");
}

TEST(SecretMask, hides_the_forms_that_programs_print_a_secret_in) {
  const std::string secret = "p\"ss w/rd+42";
  EXPECT_EQ(masked({secret}, {"x=cCJzcyB3L3JkKzQy"}), "x=***");  // base64
  EXPECT_EQ(masked({secret}, {"dXNlcjpwInNzIHcvcmQrNDI="}),
            "dXNlcj***=");  // of `user:SECRET`
  EXPECT_EQ(masked({secret}, {"702273732077", "2f72642b3432."}), "***.");
  EXPECT_EQ(masked({secret}, {"?p=p%22ss%20w%2Frd%2B42&"}), "?p=***&");
  EXPECT_EQ(masked({secret}, {"p=p%22ss+w%2Frd%2B42&x=p%22ss%20w/rd%2B42"}), "p=***&x=***");
  EXPECT_EQ(masked({secret}, {R"({"p": "p\"ss w/rd+42"})"}), R"({"p": "***"})");
}

TEST(SecretMask, hides_a_secret_whose_characters_json_escapes_in_any_way) {
  const std::string secret = "ca/n&<\xc3\xa9\xf0\x9f\x98\x80\\\"x";
  for (const std::string text :
       {R"(ca\/n\u0026\u003cé😀\\\"x)", R"(ca/n\u0026<\u00e9\uD83D\ude00\u005c\u0022x)",
        R"(\u0063\u0061\u002f\u006E\u0026\u003C\u00E9\ud83d\ude00\u005C\"\u0078)"}) {
    const auto line = "@pipe {\"message\": \"" + text + "\"}";
    for (std::size_t cut = 0; cut <= line.size(); ++cut)
      EXPECT_EQ(masked({secret}, {line.substr(0, cut), line.substr(cut)}),
                "@pipe {\"message\": \"***\"}")
          << text << " " << cut;
  }
  const std::string others = R"(C:\users \u00 \ud83d \u12g4 \)";
  EXPECT_EQ(masked({secret}, {others}), others);
  EXPECT_EQ(masked({"p\"ss w/rd+42"}, {"?p=p%22ss%20w%2frd%2b42"}), "?p=***") << "lower case";
}

TEST(SecretMask, hides_a_secret_that_is_broken_over_lines) {
  const std::string secret = "0123456789abcdef";
  EXPECT_EQ(masked({secret}, {"x 0123456\n789abc\r\ndef y\n"}), "x ***\n\n y\n");
  EXPECT_EQ(masked({secret}, {"x 0123", "\n", "456789abcdef"}), "x ***\n");
  EXPECT_EQ(masked({secret}, {"303132333435363738\n39616263646566"}), "***\n");
  EXPECT_EQ(masked({secret}, {"0123\n\n456789abcdef"}), "0123\n\n456789abcdef");
  SecretMask mask({secret});
  EXPECT_EQ(mask.feed("a line that ends with 012\n"), "a line that ends with 012\n")
      << "a few characters of a secret are not held back";
}

TEST(SecretMask, hides_a_secret_that_is_stripped_before_it_is_encoded) {
  EXPECT_EQ(masked({"some secret\n"}, {"c29tZSBzZWNyZXQ="}), "***=");
}

TEST(SecretMask, hides_all_bits_of_a_secret_in_base64_wherever_it_stands) {
  const std::string secret = "hunter2-and-more", other(secret.size(), '\x97');
  for (const std::string before : {"", "a", "~~", "\xff\xff\xff"})
    for (const std::string after : {"", "a", "~~", "\xff"}) {
      const auto shown = masked({secret}, {core::encode_base64(before + secret + after)});
      const auto like = core::encode_base64(before + other + after);
      const auto at = shown.find("***");
      ASSERT_NE(at, shown.npos) << shown;
      EXPECT_TRUE(like.starts_with(shown.substr(0, at))) << shown << " " << like;
      EXPECT_TRUE(like.ends_with(shown.substr(at + 3))) << shown << " " << like;
    }
}

TEST(SecretMask, hides_secrets_in_all_texts_of_a_failure) {
  Failure failure{
      FailureKind::not_started, "not ready: hunter2", {"hunter2?"}, {"[db] hunter2", "x"}};
  hide_secrets(failure, {"hunter2"});
  EXPECT_EQ(failure.message, "not ready: ***");
  EXPECT_EQ(failure.hints, std::vector<std::string>{"***?"});
  EXPECT_EQ(failure.details, (std::vector<std::string>{"[db] ***", "x"}));
}

TEST(SecretMask, leaves_secrets_alone_that_would_hide_everything) {
  EXPECT_EQ(masked({"", "1"}, {"1 1 1"}), "1 1 1");
}

TEST(SecretMask, hides_the_beginning_of_a_secret_where_a_text_was_cut) {
  const std::vector<std::string> secrets{"s3cret-token"};
  EXPECT_EQ(without_cut_secrets("--token s3cret-tok", secrets), "--token ***");
  EXPECT_EQ(without_cut_secrets("s3cret-token s3c", secrets), "*** ***");
  EXPECT_EQ(without_cut_secrets("as", secrets), "as") << "so short a text may be part of any word";
  EXPECT_EQ(without_cut_secrets("s3cret-tok is cut", secrets), "s3cret-tok is cut");
}

TEST(SecretMask, shows_the_beginning_of_a_secret_that_never_comes) {
  EXPECT_EQ(masked({"hunter2"}, {"hunt"}), "hunt");
}

TEST(SecretMask, holds_back_a_limited_amount_of_text) {
  SecretMask mask({"abcdefghijkl"});
  EXPECT_EQ(mask.feed("abcd"), "");
  const std::string returns(1 << 20, '\r');
  EXPECT_EQ(mask.feed(returns), "abcd" + returns);
  EXPECT_EQ(masked({"abcdefghijkl"}, {"abcd\r\r\nefgh\r", "\nijkl!"}), "***\n\n!");
}

TEST(SecretMask, gives_the_same_for_pieces_of_any_size) {
  std::mt19937 random(20261121);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) text += random() % 8 ? "ab"[random() % 2] : "\\u"[random() % 2];
    const std::vector<std::string> secrets{"aba", "abbab", "bbbb"};
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = 1 + random() % 7;
      pieces.push_back(text.substr(at, size));
      at += size;
    }
    const auto shown = masked(secrets, pieces);
    EXPECT_EQ(shown, masked(secrets, {text})) << text;
    for (const auto& secret : secrets) EXPECT_EQ(shown.find(secret), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace pipeline::engine

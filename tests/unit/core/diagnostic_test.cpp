#include "core/diagnostic.hpp"

#include <gtest/gtest.h>

namespace pipeline::core {
namespace {

std::string render_at(std::string_view source, Span span) {
  return render({"x", "wrong", span, {}, {}}, "p.yaml", source);
}

TEST(Diagnostic, shows_place_line_caret_notes_and_suggestion) {
  const std::string source = "name: digits\nsteps:\n  train: {parent_imge: x}\n";
  EXPECT_EQ(render({"unknown-key",
                    "unknown key 'parent_imge'",
                    {3, 11, 11},
                    {"allowed are: command, settings"},
                    "did you mean 'parent_image'?"},
                   "pipeline.yaml", source),
            "pipeline.yaml:3:11: error: unknown key 'parent_imge'\n"
            "      train: {parent_imge: x}\n"
            "              ^~~~~~~~~~~\n"
            "  note: allowed are: command, settings\n"
            "  did you mean 'parent_image'?");
}

TEST(Diagnostic, logins_and_queries_of_addresses_are_not_shown) {
  const Diagnostic wrong{"x",
                         "'https://me:secret@host/x?token=abc' has a login",
                         {1, 6, 4},
                         {"as https://me:secret@host/y"},
                         "write 'https://me:secret@host/z'"};
  EXPECT_EQ(render(wrong, "p.yaml", "url: https://me:secret@host/x?token=abc  # why?"),
            "p.yaml:1:6: error: 'https://*********@host/x?*********' has a login\n"
            "    url: https://*********@host/x?*********  # why?\n"
            "         ^~~~\n"
            "  note: as https://*********@host/y\n"
            "  write 'https://*********@host/z'");
}

TEST(Diagnostic, place_may_be_missing) {
  EXPECT_EQ(render({"x", "empty", {}, {}, {}}, "p.yaml", "text"), "p.yaml: error: empty");
  EXPECT_EQ(render({"x", "empty", {}, {}, {}, Severity::warning}, "", ""), "warning: empty");
  EXPECT_EQ(render({"x", "empty", {.line = 65, .column = 1}, {}, {}}, "", ""), "error: empty");
  EXPECT_EQ(render_at("", {4, 2, 1}), "p.yaml:4:2: error: wrong");
}

TEST(Diagnostic, caret_stands_right_behind_tabs_and_wide_characters) {
  EXPECT_EQ(render_at("\tx", {1, 2, 1}), "p.yaml:1:2: error: wrong\n        x\n        ^");
  EXPECT_EQ(render_at("ab\tx", {1, 4, 1}), "p.yaml:1:4: error: wrong\n    ab  x\n        ^");
  EXPECT_EQ(render_at("größe: x", {1, 10, 1}),
            "p.yaml:1:10: error: wrong\n    größe: x\n           ^");
  EXPECT_EQ(render_at("日本: x", {1, 9, 1}), "p.yaml:1:9: error: wrong\n    日本: x\n          ^");
  EXPECT_EQ(render_at("日本: x", {1, 1, 6}), "p.yaml:1:1: error: wrong\n    日本: x\n    ^~~~");
  EXPECT_EQ(render_at("e\xcc\x81: x", {1, 6, 1}),
            "p.yaml:1:6: error: wrong\n    e\xcc\x81: x\n       ^");
}

TEST(Diagnostic, caret_may_stand_at_and_behind_the_end) {
  EXPECT_EQ(render_at("ab", {1, 3, 1}), "p.yaml:1:3: error: wrong\n    ab\n      ^");
  EXPECT_EQ(render_at("ab", {1, 99, 5}), "p.yaml:1:99: error: wrong\n    ab\n      ^");
  EXPECT_EQ(render_at("ab\ncd", {1, 1, 50}), "p.yaml:1:1: error: wrong\n    ab\n    ^~");
  EXPECT_EQ(render_at("ab", {7, 1, 1}), "p.yaml:7:1: error: wrong\n    \n    ^");
  EXPECT_EQ(render_at("ab\r\ncd\r\n", {2, 2, 1}), "p.yaml:2:2: error: wrong\n    cd\n     ^");
}

TEST(Diagnostic, control_sequences_are_not_shown_as_they_are) {
  EXPECT_EQ(render_at("a\x1b[31mb", {1, 7, 1}),
            "p.yaml:1:7: error: wrong\n    a\\x1b[31mb\n             ^");
  EXPECT_EQ(printable("a\n\t\r\x7f\xff\xc2\x9b"), "a\\n\\t\\r\\x7f\\xff\\u009b");
  EXPECT_EQ(printable("x\xe2\x80\xaey"), "x\\u202ey") << "turns the direction of writing";
  EXPECT_EQ(printable("é日🙂"), "é日🙂");
  EXPECT_EQ(printable("\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80"),
            "\\xc0\\xaf\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(render({"x", "m\x1b", {}, {"n\x1b"}, "s\x1b"}, "f\x1b", ""),
            "f\\x1b: error: m\\x1b\n  note: n\\x1b\n  s\\x1b");
}

TEST(Diagnostic, long_line_is_cut_around_the_place) {
  std::string source(1'000'000, 'a');
  source[500'000] = 'X';
  const auto text = render_at(source, {1, 500'001, 1});
  EXPECT_LT(text.size(), 400u);
  const auto line = text.find('\n') + 1, caret = text.find('\n', line) + 1;
  EXPECT_EQ(text.find('X') - line, text.find('^') - caret);
  EXPECT_NE(text.find("    ...aaa"), std::string::npos);
  EXPECT_NE(text.find("aaa...\n"), std::string::npos);
}

TEST(Diagnostic, range_of_any_length_can_be_shown) {
  EXPECT_EQ(span_length(7), 7u);
  for (const std::size_t length : {65'535, 65'536, 65'537, 1 << 20}) {
    const Span span{1, 1, span_length(length)};
    EXPECT_EQ(span.length, 65'535u);
    EXPECT_EQ(render_at(std::string(length, 'x'), span), render_at(std::string(65'535, 'x'), span));
  }
}

TEST(Diagnostic, every_place_of_any_text_can_be_shown) {
  for (unsigned seed = 1; seed < 3000; ++seed) {
    unsigned state = seed;
    const auto next = [&] { return state = state * 1664525 + 1013904223, state >> 16; };
    std::string source;
    for (auto length = next() % 300; length > 0; --length) source += static_cast<char>(next());
    const auto text = render_at(source, {1 + next() % 4, next() % 320, span_length(next() % 40)});
    for (const char c : text)
      ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << seed;
  }
}

TEST(Diagnostic, likely_word_is_suggested) {
  const std::vector<std::string> words = {"parent_image",        "requirements", "environment",
                                          "runtime_environment", "user",         "uv"};
  EXPECT_EQ(did_you_mean("parent_imge", words), "did you mean 'parent_image'?");
  EXPECT_EQ(closest("Parent-Image", words), "parent_image");
  EXPECT_EQ(closest("requriements", words), "requirements");
  EXPECT_EQ(closest("usre", words), "user");
  EXPECT_EQ(closest("env", words), "environment");
  EXPECT_EQ(closest("runtime", words), "runtime_environment");
  const std::vector<std::string> as_close = {"code", "nodes"};
  EXPECT_EQ(closest("node", as_close), "nodes");
  EXPECT_FALSE(closest("xyz", words));
  EXPECT_FALSE(closest("e", words));
  EXPECT_FALSE(closest("", words));
  EXPECT_EQ(did_you_mean("completely different", words), "");
  EXPECT_FALSE(closest(std::string(1'000'000, 'a'), words));
}

TEST(InputError, has_all_its_diagnostics_in_one_text) {
  const InputError error({{"a", "first", {1, 1, 1}, {}, {}}, {"b", "second", {2, 1, 1}, {}, {}}},
                         "f", "x\ny\n");
  EXPECT_STREQ(error.what(),
               "f:1:1: error: first\n    x\n    ^\nf:2:1: error: second\n    y\n    ^");
  EXPECT_STREQ(InputError("no such option", "did you mean '--jobs'?").what(),
               "error: no such option\n  did you mean '--jobs'?");
}

}  // namespace
}  // namespace pipeline::core

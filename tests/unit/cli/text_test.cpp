#include "cli/text.hpp"

#include <gtest/gtest.h>

#include "core/quantity.hpp"

namespace pipeline::cli {
namespace {

TEST(Text, sequences_that_move_the_cursor_never_reach_the_terminal) {
  EXPECT_EQ(for_terminal("a\x1b[2Jb\x1b[1;1Hc\x1b[3Ad\x1b[?25le", true), "abcde");
  EXPECT_EQ(for_terminal("title \x1b]0;gotcha\x07 end", true), "title  end");
  EXPECT_EQ(for_terminal("link \x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\ end", true),
            "link text end");
  EXPECT_EQ(for_terminal("dcs \x1bPq#0\x1b\\ reset \x1b"
                         "c charset \x1b(0x",
                         true),
            "dcs  reset  charset x");
  EXPECT_EQ(for_terminal("bell\a back\b\b null", true), "bell back null");
  EXPECT_EQ(for_terminal("c1 \xc2\x9b"
                         "31m",
                         true),
            "c1 31m");
  EXPECT_EQ(for_terminal("unfinished \x1b[31", true), "unfinished ");
  EXPECT_EQ(for_terminal("unfinished \x1b", true), "unfinished ");
  EXPECT_EQ(for_terminal("\x1b[>4m\x1b[?1m", true), "")
      << "private sequences that only look like colours";
}

TEST(Text, colours_stay_if_wanted_and_end_with_the_line) {
  EXPECT_EQ(for_terminal("\x1b[1;31mred\x1b[0m", true), "\x1b[1;31mred\x1b[0m\x1b[0m");
  EXPECT_EQ(for_terminal("\x1b[38;2;200;2;3mrgb", true), "\x1b[38;2;200;2;3mrgb\x1b[0m");
  EXPECT_EQ(for_terminal("\x1b[4;38;5;208;1mx", true), "\x1b[4;38;5;208;1mx\x1b[0m");
  EXPECT_EQ(for_terminal("\x1b[1;31mred\x1b[0m"), "red");
}

TEST(Text, colours_that_hide_text_are_left_out) {
  for (const char* codes : {"8",           "08",
                            "30",          "30;40",
                            "97",          "37;47",
                            "41",          "38;5;0",
                            "38;5;15",     "38;5;16",
                            "38;5;231",    "38;5;232",
                            "38;2;0;0;0",  "38;2;255;255;255",
                            "38:2::0:0:0", "38",
                            "38;2;1",      "48;5;1",
                            "48;2;1;2;3",  "100",
                            "11"})
    EXPECT_EQ(for_terminal("\x1b[" + std::string(codes) + "mseen", true), "seen") << codes;
  EXPECT_EQ(for_terminal("\x1b[31;8;41mseen", true), "\x1b[31mseen\x1b[0m");
}

TEST(Text, a_progress_bar_shows_its_last_state) {
  EXPECT_EQ(for_terminal("10%\r50%\r100%"), "100%");
  EXPECT_EQ(for_terminal("done\r\n"), "done");
}

TEST(Text, bytes_that_are_not_utf8_are_replaced) {
  EXPECT_EQ(for_terminal("caf\xe9"), "caf\xef\xbf\xbd");
  EXPECT_EQ(for_terminal("\xc0\xaf overlong"), "\xef\xbf\xbd\xef\xbf\xbd overlong");
  EXPECT_EQ(for_terminal("cut \xe2\x82"), "cut \xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(for_terminal("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd") << "a surrogate";
  EXPECT_EQ(for_terminal("naïve €😀"), "naïve €😀");
}

TEST(Text, direction_overrides_are_removed) {
  EXPECT_EQ(for_terminal("if \u202e}admin\u2066"), "if }admin");
}

TEST(Text, tabs_become_spaces) { EXPECT_EQ(for_terminal("a\tb"), "a       b"); }

TEST(Text, width_is_in_columns) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("naïve"), 5u);
  EXPECT_EQ(display_width("日本"), 4u);
  EXPECT_EQ(display_width("e\u0301"), 1u) << "a combining accent";
  EXPECT_EQ(display_width("\x1b[31mred\x1b[0m"), 3u);
}

TEST(Text, clipped_text_fits) {
  EXPECT_EQ(clip("abcdef", 6), "abcdef");
  EXPECT_EQ(clip("abcdefg", 6), "abcde…");
  EXPECT_EQ(clip("日本語", 4), "日…") << "half a character is none";
  EXPECT_EQ(clip("abc", 0), "");
  EXPECT_EQ(clip("\x1b[31mred\x1b[0m", 3), "red");
}

TEST(Text, only_digests_are_shortened) {
  const std::string hex(64, 'a');
  EXPECT_EQ(shorten_digests("pipe:env-" + hex), "pipe:env-aaaaaaaaaaaa");
  EXPECT_EQ(shorten_digests("sha256:" + hex + " and " + hex),
            "sha256:aaaaaaaaaaaa and aaaaaaaaaaaa");
  EXPECT_EQ(shorten_digests("deadbeef facade"), "deadbeef facade");
}

TEST(Text, tables_align_their_columns_and_end_no_line_in_spaces) {
  Table table;
  table.add({"STEP", "STATUS", "TIME"});
  table.add({"load", {"ok", Colour::green}, ""});
  table.add({"日本", "failed", "1s"});
  EXPECT_EQ(table.render(Paint{}), "STEP  STATUS  TIME\nload  ok\n日本  failed  1s\n");
  EXPECT_EQ(table.render(Paint{true}),
            "\x1b[2mSTEP\x1b[0m  \x1b[2mSTATUS\x1b[0m  \x1b[2mTIME\x1b[0m\nload  "
            "\x1b[32mok\x1b[0m\n日本  failed  1s\n");
}

TEST(Text, times_are_shown_in_utc) {
  EXPECT_EQ(core::format_time(WallTime{std::chrono::milliseconds(1'795'248'900'000)}),
            "2026-11-21 08:15:00Z");
  EXPECT_EQ(core::format_time(WallTime{}), "");
}

}  // namespace
}  // namespace pipeline::cli

#include "serve/log_part.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "core/regular_file.hpp"

namespace pipeline::serve {
namespace {

class LogPartTest : public testing::Test {
 protected:
  core::Descriptor log(const std::string& text) {
    const auto file = folder.path() / "log";
    std::ofstream(file, std::ios::binary) << text;
    auto opened = core::open_untrusted_file(file);
    EXPECT_TRUE(opened);
    return opened;
  }
  core::TemporaryFolder folder;
};

TEST_F(LogPartTest, parts_are_whole_lines) {
  const auto file = log("one\ntwo\nthree\n");
  const auto first = part_from(file, 0, 6);
  EXPECT_EQ(first.text, "one\n");
  EXPECT_EQ(first.to, 4u);
  EXPECT_EQ(first.size, 14u);
  EXPECT_EQ(part_from(file, 4, 100).text, "two\nthree\n");
  const auto end = part_before(file, 14, 8);
  EXPECT_EQ(end.text, "three\n");
  EXPECT_EQ(end.from, 8u);
  EXPECT_EQ(part_before(file, 8, 100).text, "one\ntwo\n");
}

TEST_F(LogPartTest, a_line_that_is_longer_is_cut_between_characters) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\u20ac";
  const auto file = log(text);
  EXPECT_EQ(part_from(file, 0, 100).text.size(), 99u);
  EXPECT_EQ(part_from(file, 0, 101).text.size(), 99u);
  EXPECT_EQ(part_before(file, 3000, 100).text.size(), 99u);
  EXPECT_EQ(part_before(file, 3000, 100).from, 2901u);
  std::string again;
  for (std::uint64_t at = 0; at < 3000;) {
    const auto part = part_from(file, at, 64);
    ASSERT_GT(part.to, at);
    again += part.text;
    at = part.to;
  }
  EXPECT_EQ(again, text);
}

TEST_F(LogPartTest, bytes_that_are_not_text_end_too) {
  const auto file = log("\xff\xc3");
  EXPECT_EQ(part_from(file, 0, 10).to, 1u) << "the last byte may begin a character";
  EXPECT_EQ(part_from(file, 1, 10).to, 2u) << "the log ends before the character does";
  EXPECT_EQ(part_from(file, 99, 10).text, "");
}

}  // namespace
}  // namespace pipeline::serve

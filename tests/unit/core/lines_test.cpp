#include "core/lines.hpp"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pipeline::core {
namespace {

using testing::ElementsAre;

std::vector<std::string> lines_of(std::string_view text, std::size_t longest, std::size_t at_once) {
  Lines lines(longest);
  std::vector<std::string> found;
  for (; !text.empty(); text.remove_prefix(std::min(at_once, text.size()))) {
    lines.feed(text.substr(0, at_once), [&](std::string_view line) { found.emplace_back(line); });
    EXPECT_LT(lines.rest().size(), longest);
  }
  found.push_back("rest:" + lines.rest());
  return found;
}

TEST(LinesOfAText, are_the_same_in_pieces_of_any_size) {
  for (const std::size_t at_once : {1, 2, 3, 100})
    EXPECT_THAT(lines_of("one\n\ntwo\nthr", 100, at_once),
                ElementsAre("one", "", "two", "rest:thr"));
}

TEST(LinesOfAText, longer_than_the_limit_come_in_pieces) {
  for (const std::size_t at_once : {1, 3, 4, 100})
    EXPECT_THAT(lines_of("abcdefghij\nkl\n", 4, at_once),
                ElementsAre("abcd", "efgh", "ij", "kl", "rest:"))
        << at_once;
}

TEST(LinesOfAText, of_exactly_the_longest_size_are_followed_by_no_empty_one) {
  for (const std::size_t at_once : {1, 3, 4, 100}) {
    EXPECT_THAT(lines_of("abcd\n\nefgh\n", 4, at_once), ElementsAre("abcd", "", "efgh", "rest:"))
        << at_once;
    EXPECT_THAT(lines_of("abcdefgh\nij\n", 4, at_once), ElementsAre("abcd", "efgh", "ij", "rest:"))
        << at_once;
  }
}

}  // namespace
}  // namespace pipeline::core

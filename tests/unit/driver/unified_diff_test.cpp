#include "driver/unified_diff.hpp"

#include <gtest/gtest.h>

namespace pipeline::driver {
namespace {

TEST(UnifiedDiff, is_empty_for_equal_texts) { EXPECT_EQ(unified_diff("f", "a\nb\n", {}), ""); }

TEST(UnifiedDiff, has_changes_far_apart_in_separate_hunks) {
  EXPECT_EQ(unified_diff("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", {{1, "one"}, {10, "ten"}}),
            "--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n-1\n+one\n 2\n 3\n 4\n"
            "@@ -7,4 +7,4 @@\n 7\n 8\n 9\n-10\n+ten\n");
}

TEST(UnifiedDiff, has_changes_with_common_lines_around_them_in_the_same_hunk) {
  EXPECT_EQ(unified_diff("f", "1\n2\n3\n4\n5\n6\n7\n", {{1, "one"}, {2, "two"}, {7, "seven"}}),
            "--- a/f\n+++ b/f\n@@ -1,7 +1,7 @@\n-1\n-2\n+one\n+two\n 3\n 4\n 5\n 6\n-7\n+seven\n");
}

TEST(UnifiedDiff, keeps_a_last_line_without_an_end) {
  EXPECT_EQ(unified_diff("f", "1\n2", {{2, "two"}}),
            "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n\\ No newline at end of file\n+two\n"
            "\\ No newline at end of file\n");
}

}  // namespace
}  // namespace pipeline::driver

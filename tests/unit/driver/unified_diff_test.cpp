#include "driver/unified_diff.hpp"

#include <gtest/gtest.h>

namespace pipeline::driver {
namespace {

TEST(UnifiedDiff, nothing_changed_is_no_diff) { EXPECT_EQ(unified_diff("f", "a\nb\n", {}), ""); }

TEST(UnifiedDiff, changes_far_apart_are_hunks_of_their_own) {
  EXPECT_EQ(unified_diff("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", {{1, "one"}, {10, "ten"}}),
            "--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n-1\n+one\n 2\n 3\n 4\n"
            "@@ -7,4 +7,4 @@\n 7\n 8\n 9\n-10\n+ten\n");
}

TEST(UnifiedDiff, changes_whose_surroundings_meet_are_one_hunk) {
  EXPECT_EQ(unified_diff("f", "1\n2\n3\n4\n5\n6\n7\n", {{1, "one"}, {2, "two"}, {7, "seven"}}),
            "--- a/f\n+++ b/f\n@@ -1,7 +1,7 @@\n-1\n-2\n+one\n+two\n 3\n 4\n 5\n 6\n-7\n+seven\n");
}

TEST(UnifiedDiff, last_line_without_an_end_stays_without) {
  EXPECT_EQ(unified_diff("f", "1\n2", {{2, "two"}}),
            "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n\\ No newline at end of file\n+two\n"
            "\\ No newline at end of file\n");
}

}  // namespace
}  // namespace pipeline::driver

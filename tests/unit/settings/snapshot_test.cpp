// Moments of snapshots: how they are written, and which have passed.
#include <gtest/gtest.h>

#include "settings/snapshot.hpp"

namespace pipeline::settings {
namespace {

TEST(Snapshot, every_notation_of_a_moment_has_the_same_id) {
  EXPECT_EQ(snapshot_id("2026-11-01"), "20261101T000000Z");
  EXPECT_EQ(snapshot_id("2026-11-01T09:08:07Z"), "20261101T090807Z");
  EXPECT_EQ(snapshot_id("20261101T090807Z"), "20261101T090807Z");
  for (const auto* text :
       {"", "2026-11-31", "2026-00-01", "2026-11-01T24:00:00Z", "2026-11-01T00:60:00Z",
        "2026-11-01 00:00:00", "20261101", "2026-11-01Z"})
    EXPECT_EQ(snapshot_id(text), std::nullopt) << text;
}

TEST(Snapshot, a_moment_in_the_future_has_no_snapshot) {
  const std::chrono::system_clock::time_point now{std::chrono::seconds(1700000000)};
  EXPECT_TRUE(has_passed("20231114T221320Z", now));
  EXPECT_FALSE(has_passed("20231114T221321Z", now));
  EXPECT_FALSE(is_snapshot("2999-01-01"));
}

TEST(Snapshot, errors_about_other_notations_suggest_the_valid_one) {
  for (const auto* text : {"2024/11/1", "2024.11.01", "20241101", "1.11.2024", "2024-11-1 noon"})
    EXPECT_EQ(nearest_snapshot(text), "2024-11-01") << text;
  EXPECT_EQ(nearest_snapshot("last week"), "");
}

}  // namespace
}  // namespace pipeline::settings

#include "report/leaderboard.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "report/comparison.hpp"
#include "report/curves.hpp"

namespace pipeline::report {
namespace {

class LeaderboardTest : public testing::Test {
 protected:
  void SetUp() override { store.runs().add(run); }
  void put(const std::string& name, const std::string& parameters, const std::string& metric,
           const std::vector<store::MetricPoint>& points) {
    store.runs().put_step({.run = "r1",
                           .name = name,
                           .status = StepStatus::succeeded,
                           .attempts = 1,
                           .parameters = parameters});
    store.metrics().add_points({.run = "r1", .step = name, .name = metric, .attempt = 1}, 0,
                               points);
  }
  core::TemporaryFolder folder;
  store::RunStore store{folder.path() / "state"};
  store::RunRecord run{.id = "r1",
                       .pipeline = "p",
                       .parameters = R"({"c": 9, "seed": 1})",
                       .status = RunStatus::failed};
};

TEST_F(LeaderboardTest, a_condition_is_about_the_step) {
  put("train.c-1", R"({"c": 1})", "loss", {{0.5, 0, {}}});
  put("train.c-2", R"({"c": 2})", "loss", {{0.25, 0, {}}});
  store.runs().put_step({.run = "r1", .name = "load", .parameters = "{}"});
  EXPECT_EQ(leaderboard_of_steps(store, {run}, "")["rows"].size(), 2u) << "load has no metrics";
  const auto found = leaderboard_of_steps(store, {run},
                                          "params.c > 1 and metrics.loss < 1 and status == "
                                          "'succeeded'");
  ASSERT_EQ(found["rows"].size(), 1u);
  const auto& row = found["rows"][0];
  EXPECT_EQ(row["step"], "train.c-2");
  EXPECT_EQ(row["b"], "train");
  EXPECT_EQ(row["p"], nlohmann::json({{"c", 2}}));
  EXPECT_EQ(found["parameters"]["r1"], nlohmann::json({{"c", 9}, {"seed", 1}}));
  EXPECT_EQ(leaderboard_of_steps(store, {run}, "params.seed == 1")["rows"].size(), 2u);
  EXPECT_EQ(row["m"], nlohmann::json({{"loss", 0.25}}));
  EXPECT_EQ(found["low"], nlohmann::json({"loss"}));
  EXPECT_THROW(leaderboard_of_steps(store, {run}, "params.c >"), core::InputError);
}

TEST_F(LeaderboardTest, instances_that_failed_without_a_metric_are_counted) {
  put("train.c-1", R"({"c": 1})", "loss", {{0.5, 0, {}}});
  for (const auto* name : {"train.c-2", "load", "other.c-2"})
    store.runs().put_step({.run = "r1",
                           .name = name,
                           .status = StepStatus::failed,
                           .attempts = 1,
                           .parameters = R"({"c": 2})"});
  const auto rows = leaderboard_of_steps(store, {run}, "")["rows"];
  ASSERT_EQ(rows.size(), 2u) << rows;
  EXPECT_EQ(rows[1]["step"], "train.c-2");
  EXPECT_EQ(rows[1]["s"], "failed");
  EXPECT_EQ(rows[1]["m"], nlohmann::json::object());
  EXPECT_EQ(leaderboard_of_steps(store, {run}, "metrics.loss < 1")["rows"].size(), 1u);
}

TEST_F(LeaderboardTest, a_comparison_leaves_out_values_of_failed_instances) {
  put("train.c-1", R"({"c": 1})", "loss", {{0.5, 0, {}}});
  put("train.c-2", R"({"c": 2})", "loss", {{0.25, 0, {}}});
  auto failed = store.runs().steps("r1", "train.c-2").at(0);
  failed.status = StepStatus::failed;
  store.runs().put_step(failed);
  run.failed = 1;
  const auto rows = without_instances(compared(store, {run, run}));
  const auto row = std::ranges::find(rows, "metric", &ComparedRow::group);
  ASSERT_NE(row, rows.end());
  EXPECT_EQ(row->values.at(0), "mean 0.5, 0.5 to 0.5") << row->name;
}

TEST_F(LeaderboardTest, runs_have_the_latest_value_of_each_name) {
  put("train.c-1", R"({"c": 1})", "loss", {{0.5, 0, {}}});
  const auto rows = leaderboard_of_runs(store, "p", "params.c == 9", 10)["rows"];
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["m"], nlohmann::json({{"loss", 0.5}}));
  EXPECT_FALSE(rows[0].contains("step"));
  EXPECT_EQ(rows[0]["b"], "p");
  EXPECT_TRUE(leaderboard_of_runs(store, "other", "", 10)["rows"].empty());
}

TEST_F(LeaderboardTest, a_part_of_a_curve_has_neighbours_and_its_extremes) {
  std::vector<store::MetricPoint> points;
  for (int i = 0; i < 10'000; ++i) points.push_back({i == 5000 ? -1.0 : 0.5, i, {}});
  put("train", "{}", "loss", points);
  const auto all = curves_of(store, {run}, "loss", {}, {.points = 50});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_LE(all[0]["curve"].size(), 50u);
  EXPECT_EQ(all[0]["points"], 10'000);
  EXPECT_EQ(all[0]["curve"].front()[0], 0);
  EXPECT_EQ(all[0]["curve"].back()[0], 9999);
  bool has_lowest = false;
  for (const auto& point : all[0]["curve"]) has_lowest |= point[0] == 5000 && point[1] == -1.0;
  EXPECT_TRUE(has_lowest);
  const auto part = curves_of(store, {run}, "loss", {.from = 4990, .to = 5010}, {});
  EXPECT_EQ(part[0]["curve"].size(), 23u) << "a value more on each side";
  EXPECT_TRUE(
      curves_of(store, {run}, "loss", {.from = 20'000, .to = 30'000}, {})[0]["curve"].empty());
  EXPECT_EQ(points_of_each(1000, {}), 60u);
  EXPECT_EQ(points_of_each(1, {}), 200u);
}

}  // namespace
}  // namespace pipeline::report

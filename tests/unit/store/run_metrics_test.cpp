#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/file.hpp"
#include "store/run_store.hpp"

namespace pipeline::store {
namespace {

class RunMetricsTest : public testing::Test {
 protected:
  void add_run(const std::string& id, const std::string& reused_from = {}) {
    RunRecord run{.id = id, .pipeline = "p", .parameters = "{}"};
    run.driver.process = ProcessId::self();
    store.runs().add(run);
    StepRecord step{.run = id, .name = "train"};
    step.status = reused_from.empty() ? StepStatus::succeeded : StepStatus::cached;
    step.reused_from = reused_from;
    step.key = "key";
    step.parameters = "{}";
    store.runs().put_step(step);
  }
  core::TemporaryFolder folder;
  RunStore store{folder.path() / "state"};
};

TEST_F(RunMetricsTest, incomplete_points_are_an_error) {
  EXPECT_THROW(read_points("123"), core::EnvironmentError);
  EXPECT_TRUE(read_points("").empty());
}

TEST_F(RunMetricsTest, infinite_numbers_and_nan_are_kept) {
  add_run("r");
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  const std::vector<MetricPoint> points{{std::nan(""), -1, WallTime(std::chrono::milliseconds(5))},
                                        {infinity, {}, {}},
                                        {-infinity, 0, {}},
                                        {0.1, 7, {}}};
  store.metrics().add_points({.run = "r", .step = "train", .name = "loss", .attempt = 1}, 0,
                             points);
  const auto metric = store.metrics().list("r").at(0);
  EXPECT_EQ(metric.points, 4u);
  EXPECT_EQ(metric.last.value, 0.1);
  const auto found = store.metrics().points(metric);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_TRUE(std::isnan(found[0].value));
  EXPECT_EQ(found[0].step, -1);
  EXPECT_EQ(found[0].time, points[0].time);
  EXPECT_EQ(found[1].value, infinity);
  EXPECT_FALSE(found[1].step);
  EXPECT_EQ(found[2].value, -infinity);
}

TEST_F(RunMetricsTest, an_attempt_continues_the_series_before_its_first_step) {
  add_run("r");
  MetricRecord metric{.run = "r", .step = "train", .name = "loss", .attempt = 1};
  store.metrics().add_points(metric, 0,
                             std::vector<MetricPoint>{{5, 0, {}}, {4, 1, {}}, {3, 2, {}}});
  metric.attempt = 2;
  store.metrics().add_points(metric, 0, std::vector<MetricPoint>{{3.5, 2, {}}, {2, 3, {}}});
  metric.attempt = 3;
  store.metrics().add_points(metric, 0, std::vector<MetricPoint>{{1, 3, {}}});
  const auto found = store.metrics().list("r").at(0);
  EXPECT_EQ(found.attempt, 3u);
  EXPECT_EQ(found.points, 4u);
  std::string text;
  for (const auto& point : store.metrics().points(found))
    text += std::to_string(*point.step) + " by " + std::to_string(point.attempt) + "\n";
  EXPECT_EQ(text, "0 by 1\n1 by 1\n2 by 2\n3 by 3\n");
  metric.attempt = 4;
  store.metrics().add_points(metric, 0, std::vector<MetricPoint>{{9, {}, {}}});
  EXPECT_EQ(store.metrics().list("r").at(0).points, 1u) << "values without steps begin anew";
}

TEST_F(RunMetricsTest, blocks_are_one_series_and_the_last_attempt_counts) {
  add_run("r");
  MetricRecord metric{.run = "r", .step = "train", .name = "loss", .attempt = 1};
  store.metrics().add_points(metric, 0, std::vector<MetricPoint>{{9, {}, {}}});
  metric.attempt = 2;
  store.metrics().add_points(metric, 0, std::vector<MetricPoint>{{1, {}, {}}, {2, {}, {}}});
  store.metrics().add_points(metric, 2, std::vector<MetricPoint>{{3, {}, {}}});
  const auto metrics = store.metrics().list("r");
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_EQ(metrics[0].attempt, 2u);
  EXPECT_EQ(metrics[0].points, 3u);
  EXPECT_EQ(metrics[0].last.value, 3);
  EXPECT_EQ(store.metrics().points(metrics[0]).size(), 3u);
  store.metrics().remove("r", "train", 2);
  EXPECT_EQ(store.metrics().list("r").at(0).last.value, 9);
}

TEST_F(RunMetricsTest, a_reused_step_has_the_metrics_of_the_run_that_made_it) {
  add_run("first");
  store.metrics().add_points({.run = "first", .step = "train", .name = "loss", .attempt = 1}, 0,
                             std::vector<MetricPoint>{{4, {}, {}}});
  add_run("second", "first");
  const auto metrics = store.metrics().list("second");
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_EQ(metrics[0].run, "first");
  EXPECT_EQ(store.metrics().points(metrics[0]).at(0).value, 4);
}

TEST_F(RunMetricsTest, a_reused_step_keeps_them_when_the_run_that_made_it_is_removed) {
  add_run("first");
  store.metrics().add_points({.run = "first", .step = "train", .name = "loss", .attempt = 1}, 0,
                             std::vector<MetricPoint>{{4, {}, {}}});
  store.cache().add({"key", "first", "train", {}}, "p", {});
  for (const auto* id : {"second", "third", "fourth"}) add_run(id, "first");
  for (const auto* id : {"first", "second"}) {
    auto run = *store.runs().find(id);
    run.status = RunStatus::succeeded;
    store.runs().finish(run);
    ASSERT_TRUE(store.remove_run(id, true));
    for (const auto* later : {"third", "fourth"}) {
      const auto metrics = store.metrics().list(later);
      ASSERT_EQ(metrics.size(), 1u) << later << " without " << id;
      EXPECT_EQ(store.metrics().points(metrics[0]).at(0).value, 4);
    }
  }
  EXPECT_EQ(store.cache().find("key")->run, "third");
}

TEST_F(RunMetricsTest, measurements_are_read_as_they_were_written) {
  add_run("r");
  AttemptRecord attempt{.run = "r", .step = "train"};
  attempt.usage.user = std::chrono::microseconds(1500);
  attempt.usage.peak_memory = std::uint64_t{3} << 40;
  attempt.phases.running = std::chrono::milliseconds(12);
  attempt.stored = "model: moved";
  store.attempts().put(attempt);
  const auto found = store.attempts().list("r", "train").at(0);
  EXPECT_EQ(found.usage, attempt.usage);
  EXPECT_EQ(found.phases, attempt.phases);
  EXPECT_EQ(found.stored, attempt.stored);
  EXPECT_FALSE(found.usage.system) << "the system time was not measured";
}

TEST_F(RunMetricsTest, tags_and_notes_are_read_as_they_were_written) {
  add_run("r");
  store.runs().set_tags("r", {"best", "müde"});
  store.runs().set_note("r", "the first");
  EXPECT_EQ(store.runs().find("r")->tags, (std::vector<std::string>{"best", "müde"}));
  EXPECT_EQ(store.runs().find("r")->note, "the first");
  EXPECT_EQ(store.runs().list(0, {}, "best").size(), 1u);
}

}  // namespace
}  // namespace pipeline::store

#include "report/headline.hpp"

#include <gtest/gtest.h>

#include "core/file.hpp"

namespace pipeline::report {
namespace {

class HeadlineTest : public testing::Test {
 protected:
  store::RunRecord add_run(const std::string& id) {
    store::RunRecord run{.id = id, .pipeline = "p", .parameters = "{}"};
    store.runs().add(run);
    store.key_values().put(
        store::declared_kind, id,
        R"({"load": {}, "train": {"needs": ["load"]}, "evaluate": {"needs": ["train"]},
            "plot": {"needs": ["evaluate"]}})");
    return run;
  }
  void add(const std::string& run, const std::string& step, const std::string& name, double value) {
    if (store.runs().steps(run, step).empty())
      store.runs().put_step(
          {.run = run, .name = step, .status = StepStatus::succeeded, .parameters = "{}"});
    const store::MetricPoint point{.value = value};
    store.metrics().add_points({.run = run, .step = step, .name = name, .attempt = 1}, 0,
                               {&point, 1});
  }
  core::TemporaryFolder folder;
  store::RunStore store{folder.path() / "state"};
};

TEST_F(HeadlineTest, is_of_the_last_steps_with_metrics) {
  const auto run = add_run("r");
  add("r", "train", "loss", 0.5);
  add("r", "evaluate", "accuracy", 0.9);
  const auto found = headlines_of(store, run);
  ASSERT_EQ(found.size(), 1u) << "metrics of earlier steps are left out";
  EXPECT_EQ(found[0].step + "." + found[0].name, "evaluate.accuracy");
}

TEST_F(HeadlineTest, is_of_steps_that_run_in_rounds_together_though_each_follows_the_other) {
  const auto run = add_run("r");
  store.key_values().put(store::declared_kind, "r",
                         R"({"fit": {"needs": ["check"]}, "check": {"needs": ["fit"]}})");
  add("r", "fit.round-0", "loss", 0.5);
  const auto found = headlines_of(store, run);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].step + "." + found[0].name, "fit.loss");
}

TEST_F(HeadlineTest, has_the_metrics_that_the_pipeline_names_in_its_order) {
  const auto run = add_run("r");
  store.key_values().put(store::declared_kind, "r",
                         R"({"train": {"headline": {"loss": 1}}, "plot": {"needs": ["train"]},
                             "evaluate": {"needs": ["train"], "headline": {"f1.macro": 0}}})");
  for (const auto* name : {"accuracy", "f1.macro"}) add("r", "evaluate", name, 0.9);
  for (const auto* name : {"loss", "lr"}) add("r", "train", name, 0.5);
  const auto found = headlines_of(store, run);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].step + "." + found[0].name, "evaluate.f1.macro");
  EXPECT_EQ(found[1].step + "." + found[1].name, "train.loss");
}

TEST_F(HeadlineTest, of_a_matrix_is_the_best_instance) {
  const auto run = add_run("r");
  for (const auto& [instance, loss] : {std::pair{"evaluate.c-1", 0.5}, {"evaluate.c-2", 0.25}})
    add("r", instance, "loss", loss);
  const auto found = headlines_of(store, run);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].instance, "evaluate.c-2");
  EXPECT_EQ(found[0].value, 0.25);
  EXPECT_EQ(found[0].mean, 0.375);
  EXPECT_EQ(found[0].instances, 2u);
}

TEST_F(HeadlineTest, of_a_matrix_is_not_of_a_failed_instance) {
  auto run = add_run("r");
  for (const auto& [instance, loss] : {std::pair{"evaluate.c-1", 0.5}, {"evaluate.c-2", 0.25}})
    add("r", instance, "loss", loss);
  store.runs().put_step(
      {.run = "r", .name = "evaluate.c-2", .status = StepStatus::failed, .parameters = "{}"});
  run.failed = 1;
  const auto found = headlines_of(store, run);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].instance, "evaluate.c-1");
  EXPECT_EQ(found[0].instances, 1u);
}

TEST_F(HeadlineTest, is_compared_with_the_run_before_and_the_best_earlier_one) {
  for (const auto& [id, accuracy] : {std::pair{"r1", 0.9}, {"r2", 0.7}, {"r3", 0.8}, {"r4", 1.0}}) {
    add_run(id);
    add(id, "evaluate", "accuracy", accuracy);
  }
  const auto found = headline_history(store, *store.runs().find("r3"));
  ASSERT_EQ(found.size(), 1u);
  ASSERT_TRUE(found[0].last && found[0].best);
  EXPECT_EQ(found[0].last->run, "r2");
  EXPECT_EQ(found[0].best->run, "r1") << "later runs do not count";
}

TEST(BetterLower, is_known_by_the_words_of_the_name) {
  for (const auto* name : {"loss", "val_loss", "RMSE", "word error rate"})
    EXPECT_TRUE(is_better_lower(name)) << name;
  for (const auto* name : {"accuracy", "lossless", "f1", "timely"})
    EXPECT_FALSE(is_better_lower(name)) << name;
}

}  // namespace
}  // namespace pipeline::report

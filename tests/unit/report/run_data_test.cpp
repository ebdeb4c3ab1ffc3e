#include "report/run_data.hpp"

#include <cmath>
#include <limits>
#include <tuple>

#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "report/run_table.hpp"

namespace pipeline::report {
namespace {

class RunDataTest : public testing::Test {
 protected:
  void put(const std::string& name, StepStatus status, unsigned attempts = 0) {
    store::StepRecord step{.run = "r1", .name = name, .status = status, .parameters = "{}"};
    step.attempts = attempts;
    store.runs().put_step(step);
    if (attempts > 0)
      store.attempts().put({.run = "r1", .step = name, .number = attempts, .log = "r1/" + name});
  }
  void SetUp() override { store.runs().add(run); }
  core::TemporaryFolder folder;
  store::RunStore store{folder.path() / "state"};
  store::ArtifactStore artifacts{folder.path() / "state" / "artifacts"};
  store::RunRecord run{
      .id = "r1", .pipeline = "p", .parameters = R"({"c": 2})", .status = RunStatus::succeeded};
};

TEST_F(RunDataTest, only_changes_are_returned_again) {
  put("a", StepStatus::running, 1);
  put("b", StepStatus::pending);
  RunData data(store, artifacts, run, {.logs = 0, .pictures = 0, .digits = 64});
  EXPECT_EQ(data.all()["steps"].size(), 2u);
  EXPECT_TRUE(data.changes().is_null());
  put("b", StepStatus::running, 1);
  auto changes = data.changes();
  ASSERT_EQ(changes["steps"].size(), 1u);
  EXPECT_EQ(changes["steps"][0]["n"], "b");
  EXPECT_EQ(changes["steps"][0]["a"][0]["e"], true) << "the attempt has not ended";
  EXPECT_FALSE(changes.contains("run"));
  store.runs().set_tags("r1", {"best"});
  changes = data.changes();
  EXPECT_EQ(changes["run"]["tags"][0], "best");
  EXPECT_FALSE(changes.contains("steps"));
  const store::MetricPoint point{.value = 0.5};
  store.metrics().add_points({.run = "r1", .step = "b", .name = "loss", .attempt = 1}, 0,
                             {&point, 1});
  EXPECT_EQ(data.changes()["metrics"][0]["last"], 0.5);
  EXPECT_TRUE(data.changes().is_null());
}

TEST_F(RunDataTest, an_attempt_with_nodes_has_its_processes) {
  put("train", StepStatus::failed, 1);
  std::vector<store::TaskRecord> tasks{{0, 143, "machine", "r1/train", {}}, {.rank = 1}};
  tasks[0].usage.user = std::chrono::milliseconds(5);
  tasks[0].usage.peak_memory = 6;
  tasks[0].running = std::chrono::milliseconds(7);
  tasks[1].node_rank = 1;
  tasks[1].gpus = {4};
  tasks[1].has_failed_first = true;
  store.attempts().put({.run = "r1",
                        .step = "train",
                        .number = 1,
                        .log = "r1/train",
                        .usage = {.peak_memory = 9, .memory_limit = 8}},
                       tasks);
  put("plain", StepStatus::succeeded, 1);
  const auto steps = RunData(store, artifacts, run, {}).all()["steps"];
  EXPECT_EQ(steps[0]["a"][0]["ra"],
            nlohmann::json::parse(
                "[[0, 0, 0, 143, 7, 5, 6, []], [1, 1, null, null, null, null, null, [4]]]"));
  EXPECT_EQ(steps[0]["a"][0]["rf"], 1);
  EXPECT_EQ(steps[0]["a"][0]["y"], 6)
      << "of the node that used most, because the limit is a node's";
  EXPECT_EQ(steps[0]["a"][0]["yl"], 8);
  EXPECT_FALSE(steps[1]["a"][0].contains("ra"));
  const auto summary = RunData(store, artifacts, run, {.details = false}).all();
  EXPECT_EQ(summary["failures"][0]["rf"], 1) << "the log of what failed shows its lines";
}

TEST_F(RunDataTest, an_input_is_an_output_or_those_that_were_gathered) {
  const auto same = core::sha256("same"), other = core::sha256("other"),
             gather = core::sha256("gather");
  for (const auto& [name, digest] :
       {std::pair{"train.c-1", same}, {"train.c-2", other}, {"train.c-3", same}})
    store.runs().put_step({.run = "r1",
                           .name = name,
                           .status = StepStatus::succeeded,
                           .parameters = "{}",
                           .outputs = {{"model", "model", digest, false, 4}}});
  store.lineage().record_gather(gather,
                                store::gathered_text({{same, {}}, {other, {}}, {same, {}}}));
  for (const std::string name : {"best", "worst"}) {
    store.runs().put_step({.run = "r1",
                           .name = name,
                           .status = StepStatus::succeeded,
                           .key = name,
                           .parameters = "{}"});
    store.cache().add({name, "r1", name, {}}, "p",
                      {{"input first", other.hex()},
                       {"input models", gather.hex()},
                       {"input outside", core::sha256("outside").hex()}});
  }
  const auto data = RunData(store, artifacts, run, {}).all();
  const auto inputs = nlohmann::json::parse(R"([["first", "train.c-2.model"], ["models", 0]])");
  EXPECT_EQ(data["steps"][3]["f"], inputs);
  EXPECT_EQ(data["steps"][4]["f"], inputs) << "a gather is listed once";
  EXPECT_EQ(data["gathers"],
            nlohmann::json::parse(R"([["train.c-1.model", "train.c-2.model", "train.c-3.model"]])"))
      << "each gathered step is listed, though two have equal outputs";
}

TEST_F(RunDataTest, details_are_returned_only_of_the_step_that_is_asked_for) {
  const auto made = core::sha256("made");
  store.runs().put_step({.run = "r1",
                         .name = "make",
                         .status = StepStatus::succeeded,
                         .parameters = "{}",
                         .outputs = {{"plot", "plot.png", made, false, 4}}});
  store.runs().put_step({.run = "r1",
                         .name = "use.c-1",
                         .status = StepStatus::succeeded,
                         .key = "k",
                         .image = "python",
                         .parameters = R"({"c": 1})"});
  store.cache().add({"k", "r1", "use.c-1", {}}, "p", {{"input plot", made.hex()}});
  const ReportLimits limits{.logs = 0, .pictures = 0, .digits = 64, .details = false};
  RunData data(store, artifacts, run, limits);
  const auto all = data.all();
  EXPECT_EQ(all["steps"][1],
            nlohmann::json::parse(
                R"({"n": "use.c-1", "s": "succeeded", "b": "use", "p": {"c": 1}, "i": 0})"));
  EXPECT_EQ(all["pictures"][0]["digest"], made.hex()) << "pictures are known without outputs";
  EXPECT_TRUE(data.changes().is_null());
  const auto one = RunData(store, artifacts, run, limits).details("use.c-1");
  EXPECT_EQ(one["step"]["p"]["c"], 1);
  EXPECT_EQ(one["step"]["f"], nlohmann::json::parse(R"([["plot", "make.plot"]])"));
  EXPECT_EQ(one["images"][one["step"]["i"].get<std::size_t>()], "python");
  EXPECT_TRUE(RunData(store, artifacts, run, limits).details("nobody").is_null());
}

TEST_F(RunDataTest, metrics_of_reused_steps_are_those_of_the_run_that_made_them) {
  auto earlier = run;
  earlier.id = "r0";
  store.runs().add(earlier);
  const store::MetricPoint first{.value = 1}, second{.value = 2};
  for (const std::string step : {"a", "b"})
    for (const unsigned attempt : {1u, 2u})
      store.metrics().add_points({.run = "r0", .step = step, .name = "loss", .attempt = attempt}, 0,
                                 {attempt == 1 ? &first : &second, 1});
  store.metrics().add_points({.run = "r1", .step = "b", .name = "loss", .attempt = 1}, 0,
                             {&first, 1});
  store.runs().put_step(
      {.run = "r1", .name = "b", .status = StepStatus::succeeded, .parameters = "{}"});
  store.runs().put_step({.run = "r1",
                         .name = "a",
                         .status = StepStatus::cached,
                         .reused_from = "r0",
                         .parameters = "{}"});
  for (const std::string step : {"", "a"}) {
    const auto metrics = store.metrics().list("r1", step);
    ASSERT_EQ(metrics.size(), step.empty() ? 2u : 1u);
    EXPECT_EQ(metrics.back().step, "a");
    EXPECT_EQ(metrics.back().run, "r0");
    EXPECT_EQ(metrics.back().last.value, 2) << "the last attempt's";
  }
  EXPECT_EQ(store.metrics().list("r1").front().last.value, 1);
}

TEST_F(RunDataTest, runs_are_sorted_by_a_value_and_those_without_it_come_last) {
  for (const auto& [id, parameters] :
       {std::pair{"r2", R"({"c": 10})"}, {"r3", "{}"}, {"r4", R"({"c": 1})"}}) {
    auto other = run;
    other.id = id;
    other.parameters = parameters;
    store.runs().add(other);
  }
  RunTable table(store);
  const auto ids = [&](const RunQuery& query, std::size_t limit = 0) {
    std::string text;
    for (const auto& one : table.find(query, limit)) text += one.record.id + " ";
    return text;
  };
  EXPECT_EQ(ids({}), "r4 r3 r2 r1 ");
  EXPECT_EQ(ids({.sort = "params.c"}), "r2 r1 r4 r3 ");
  EXPECT_EQ(ids({.sort = "params.c", .is_ascending = true}), "r4 r1 r2 r3 ");
  EXPECT_EQ(ids({.where = "params.c > 1", .sort = "params.c"}, 1), "r2 ");
  EXPECT_EQ(table.find({.columns = {"params.c"}}, 1)[0].values[0], 1);
  store.runs().set_tags("r1", {"best"});
  EXPECT_EQ(table.find({.sort = "params.c", .columns = {"run.tags"}}, 2)[1].values[0], "best")
      << "kept values take the new record";
}

TEST_F(RunDataTest, runs_whose_values_do_not_fit_a_filter_are_not_found_and_hide_no_others) {
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  for (const auto& [id, parameters, loss] : {std::tuple{"r2", R"({"c": "abc"})", std::nan("")},
                                             {"r3", R"({"c": 1})", -infinity},
                                             {"r4", R"({"c": 9})", 0.25}}) {
    auto other = run;
    other.id = id;
    other.parameters = parameters;
    store.runs().add(other);
    const store::MetricPoint point{.value = loss};
    store.metrics().add_points({.run = id, .step = "a", .name = "loss", .attempt = 1}, 0,
                               {&point, 1});
    store.runs().put_step(
        {.run = id, .name = "a", .status = StepStatus::succeeded, .parameters = "{}"});
  }
  RunTable table(store);
  const auto ids = [&](const RunQuery& query) {
    std::string text;
    for (const auto& one : table.find(query, 0)) text += one.record.id + " ";
    return text;
  };
  EXPECT_EQ(ids({.where = "params.c > 1"}), "r4 r1 ");
  EXPECT_EQ(ids({.where = "params.c == 'abc'"}), "r2 ");
  EXPECT_EQ(ids({.where = "metrics.loss < 0.5"}), "r4 r3 ");
  EXPECT_EQ(ids({.where = "metrics.a.loss <= 1 or params.c == 2"}), "r4 r3 r1 ");
  EXPECT_EQ(ids({.sort = "metrics.loss"}), "r4 r3 r2 r1 ") << "runs without a number come last";
  EXPECT_THROW(ids({.where = "metrics.loss == 'low'"}), core::InputError);
  EXPECT_THROW(ids({.where = "status > 1"}), core::InputError);
}

}  // namespace
}  // namespace pipeline::report

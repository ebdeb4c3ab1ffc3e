#include "report/run_data.hpp"

#include <gtest/gtest.h>

#include "core/file.hpp"
#include "report/run_table.hpp"

namespace pipeline::report {
namespace {

class RunDataTest : public testing::Test {
 protected:
  void put(const std::string& name, StepStatus status, unsigned attempts = 0) {
    store::StepRecord step{.run = "r1", .name = name, .status = status, .parameters = "{}"};
    step.attempts = attempts;
    store.put_step(step);
    if (attempts > 0)
      store.put_attempt({.run = "r1", .step = name, .number = attempts, .log = "r1/" + name});
  }
  void SetUp() override { store.add_run(run); }
  core::TemporaryFolder folder;
  store::RunStore store{folder.path() / "state"};
  store::ArtifactStore artifacts{folder.path() / "state" / "artifacts"};
  store::RunRecord run{
      .id = "r1", .pipeline = "p", .parameters = R"({"c": 2})", .status = RunStatus::succeeded};
};

TEST_F(RunDataTest, only_what_has_changed_is_returned_again) {
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
  store.tag_run("r1", {"best"});
  changes = data.changes();
  EXPECT_EQ(changes["run"]["tags"][0], "best");
  EXPECT_FALSE(changes.contains("steps"));
  const store::MetricPoint point{.value = 0.5};
  store.add_points({.run = "r1", .step = "b", .name = "loss", .attempt = 1}, 0, {&point, 1});
  EXPECT_EQ(data.changes()["metrics"][0]["last"], 0.5);
  EXPECT_TRUE(data.changes().is_null());
}

TEST_F(RunDataTest, runs_are_sorted_by_a_value_and_those_without_it_come_last) {
  for (const auto& [id, parameters] :
       {std::pair{"r2", R"({"c": 10})"}, {"r3", "{}"}, {"r4", R"({"c": 1})"}}) {
    auto other = run;
    other.id = id;
    other.parameters = parameters;
    store.add_run(other);
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
  store.tag_run("r1", {"best"});
  EXPECT_EQ(table.find({.sort = "params.c", .columns = {"run.tags"}}, 2)[1].values[0], "best")
      << "kept values take the new record";
}

}  // namespace
}  // namespace pipeline::report

#include "report/run_data.hpp"

#include <gtest/gtest.h>

#include "core/file.hpp"

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

}  // namespace
}  // namespace pipeline::report

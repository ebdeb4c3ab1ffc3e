// Outputs that stay in a remote store.
#include "engine/cache/elsewhere.hpp"
#include "settings/remote_store.hpp"
#include "unit/engine/run_fixture.hpp"

namespace pipeline::engine {
namespace {

using orchestrators::Attempt;
using orchestrators::AttemptResult;
using testing::HasSubstr;

class ElsewhereRun : public RunTest {
 protected:
  ElsewhereRun() {
    remote_store = &remote;
    orchestrator.takes_elsewhere = true;
    pipeline.steps = {step("load"), step("train", {"load"})};
    orchestrator.steps["load"] = [this](const Attempt& attempt) {
      EXPECT_TRUE(attempt.output_names.at(0).may_stay);
      AttemptResult result{std::nullopt, 0, "fake"};
      result.elsewhere["out"] = {digest.hex(), {.bytes = 7, .store = "{\"url\":\"s3://team\"}"}};
      return result;
    };
    orchestrator.steps["train"] = [this](const Attempt& attempt) {
      const auto& input = attempt.inputs.at(0);
      EXPECT_EQ(input.digest, digest.hex());
      EXPECT_TRUE(input.elsewhere);
      if (std::exchange(is_lost, false)) throw orchestrators::LostInput("it is gone", input.digest);
      return writes(attempt, "trained");
    };
  }

  const core::Digest digest = core::sha256("content");
  settings::RemoteStoreSettings remote{"s3://team", {}};
  bool is_lost = false;
};

TEST_F(ElsewhereRun, takes_an_output_from_there_and_reuses_it) {
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_EQ(run().cached, 2u);
  orchestrator.started.clear();
  EngineOptions options;
  options.force = {"train"};
  EXPECT_EQ(run(options).cached, 1u);
  EXPECT_EQ(orchestrator.started["load"], 0);
}

TEST_F(ElsewhereRun, does_not_reuse_an_output_in_another_store_but_keeps_the_result) {
  run();
  remote.url = "s3://other";
  EXPECT_EQ(run().cached, 1u);
  EXPECT_EQ(orchestrator.started["load"], 2);
  remote.url = "s3://team";
  EXPECT_EQ(run().cached, 2u);
}

TEST_F(ElsewhereRun, makes_an_output_again_that_its_executor_cannot_have) {
  is_lost = true;
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_EQ(orchestrator.started["load"], 2);
  EXPECT_EQ(orchestrator.started["train"], 2);
  orchestrator.steps["load"] = [](const Attempt&) { return fails_with(1); };
  is_lost = true;
  EngineOptions options;
  options.force = {"train"};
  EXPECT_EQ(run(options).status, RunStatus::failed);
  EXPECT_THAT(recorder.end_of("train").failure->message,
              HasSubstr("the input 'load' of 'train' is damaged: it is gone"));
}

TEST_F(ElsewhereRun, without_the_store_cannot_take_the_output_to_another_executor) {
  orchestrator.takes_elsewhere = false;
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_THAT(recorder.end_of("train").failure->message, HasSubstr("is in a remote store"));
}

TEST(AnOutput, stays_elsewhere_unless_the_engine_reads_it) {
  PipelineSpec pipeline;
  auto make = step("make");
  make.outputs = {{"data", "data"}, {.name = "scores", .metrics = true}, {"list", "list"}};
  auto each = step("each");
  each.matrix = MatrixSpec{"each", {{.name = "x", .items = OutputValue{{"make", "list"}, {}}}}};
  pipeline.steps = {make, each};
  EXPECT_TRUE(may_stay_elsewhere(pipeline, make, "data"));
  EXPECT_FALSE(may_stay_elsewhere(pipeline, make, "scores"));
  EXPECT_FALSE(may_stay_elsewhere(pipeline, make, "list"));
  make.cache = false;
  EXPECT_FALSE(may_stay_elsewhere(pipeline, make, "data"));
  make.cache = true;
  make.publish["data"] = "name";
  EXPECT_FALSE(may_stay_elsewhere(pipeline, make, "data"));
  make.publish.clear();
  make.publish_to = "/folder";
  EXPECT_FALSE(may_stay_elsewhere(pipeline, make, "data"));
}

}  // namespace
}  // namespace pipeline::engine

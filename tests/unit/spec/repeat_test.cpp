#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "spec/pipeline_file.hpp"
#include "support/error_text.hpp"

namespace pipeline::spec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PipelineSpec read_repeated(const std::string& steps) {
  return parse("name: x\nsteps:\n" + steps, "/nowhere/pipeline.yaml", {});
}

std::string repeat_error(const std::string& steps) {
  return test::error_text([&] { read_repeated(steps); });
}

const std::string search = R"(  start: {command: [start], outputs: [best]}
  propose:
    repeat: {until: "${choose.best.loss} < 0.1", max: 7}
    command: [propose, "${inputs.best}", "${params.round}", "${outputs.points}"]
    inputs: {best: {first: start.best, then: choose.best}}
    outputs: [points]
  trial:
    repeat: propose
    matrix:
      point: ${propose.points[*]}
    command: [trial, "${params.point}", "${outputs.loss}"]
    outputs: [loss]
  choose:
    repeat: propose
    command: [choose, "${inputs.losses}", "${outputs.best}"]
    inputs: {losses: "trial[*].loss"}
    outputs: [best]
)";

TEST(Repeat, keeps_its_steps_until_the_run_makes_those_of_a_round) {
  const auto pipeline =
      read_repeated(search + "  use: {command: [use], inputs: {best: choose.best}}\n");
  ASSERT_EQ(pipeline.steps.size(), 5u);
  const auto& propose = pipeline.steps[1];
  ASSERT_TRUE(propose.repeat);
  EXPECT_EQ(propose.repeat->of, "propose");
  EXPECT_EQ(propose.repeat->max, 7u);
  EXPECT_EQ(propose.repeat->until->outputs.begin()->second.source, (SourceSpec{"choose", "best"}));
  EXPECT_THAT(propose.inputs[0].sources, ElementsAre(SourceSpec{"start", "best"}));
  EXPECT_EQ(*propose.inputs[0].then, (SourceSpec{"choose", "best"}));
  EXPECT_EQ(pipeline.steps[2].repeat->of, "propose");
  EXPECT_FALSE(pipeline.steps[2].repeat->until);
  EXPECT_THAT(pipeline.steps[4].inputs[0].sources, ElementsAre(SourceSpec{"choose", "best"}));
}

TEST(Repeat, takes_the_instance_with_the_same_values_from_the_round_before) {
  const auto pipeline = read_repeated(R"(  init: {command: [init], outputs: [state]}
  round: {repeat: {max: 2}, command: [round], after: [], outputs: [go]}
  fit:
    repeat: round
    matrix: {c: [1, 2]}
    command: [fit, "${inputs.state}", "${outputs.state}"]
    inputs: {state: {first: init.state, then: "fit[=].state"}}
    outputs: [state]
)");
  ASSERT_EQ(pipeline.steps.size(), 4u);
  EXPECT_EQ(pipeline.steps[2].name, "fit.c-1");
  EXPECT_EQ(*pipeline.steps[2].inputs[0].then, (SourceSpec{"fit.c-1", "state"}));
  EXPECT_EQ(*pipeline.steps[3].inputs[0].then, (SourceSpec{"fit.c-2", "state"}));
}

TEST(Repeat, of_an_included_file_has_the_names_of_the_pipeline) {
  const auto folder = testing::TempDir();
  std::ofstream(folder + "/repeat-part.yaml") << "steps:\n" << search;
  const auto pipeline = parse("name: x\ninclude: [{file: repeat-part.yaml, prefix: p}]\n",
                              folder + "/pipeline.yaml", {});
  EXPECT_EQ(pipeline.steps[2].repeat->of, "p-propose");
  EXPECT_EQ(*pipeline.steps[1].inputs[0].then, (SourceSpec{"p-choose", "best"}));
  EXPECT_EQ(pipeline.steps[1].repeat->until->outputs.begin()->second.source.step, "p-choose");
}

TEST(Repeat, reports_a_condition_that_is_the_same_after_each_round) {
  const auto until = [](const std::string& expression) {
    return repeat_error("  a: {repeat: {until: \"" + expression + "\", max: 2}, command: [a]}\n");
  };
  for (const char* constant : {"true", "1 > 2", "not false"})
    EXPECT_THAT(until(constant), HasSubstr("it is the same after each round")) << constant;
  EXPECT_EQ(until("${params.round} > 0"), "no error");
  EXPECT_THAT(until("1 >"), testing::Not(HasSubstr("it is the same after each round")));
}

TEST(Repeat, reports_references_that_no_round_can_have) {
  EXPECT_THAT(repeat_error(search + "  use: {command: [use], inputs: {all: \"trial[*].loss\"}}\n"),
              HasSubstr("step 'trial' has other instances in each round"));
  EXPECT_THAT(repeat_error(search + "  use: {matrix: trial, command: [use]}\n"),
              HasSubstr("step 'use' has the matrix of 'trial', and 'trial' is repeated in rounds"));
  EXPECT_THAT(repeat_error(R"(  a: {repeat: {max: 2}, command: [a], outputs: [x]}
  b: {command: [b], inputs: {x: a.x}, outputs: [x]}
  c: {repeat: a, command: [c], inputs: {x: b.x}}
)"),
              HasSubstr("step 'b' stands between steps of the rounds of 'a', and is not in these "
                        "rounds"));
}

}  // namespace
}  // namespace pipeline::spec

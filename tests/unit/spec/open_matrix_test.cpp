#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "spec/pipeline_file.hpp"

namespace pipeline::spec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PipelineSpec read_steps(const std::string& steps) {
  return parse("name: x\nsteps:\n" + steps, "/nowhere/pipeline.yaml", {});
}

std::string problem_of(const std::string& steps) {
  try {
    read_steps(steps);
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "no error";
}

const std::string split = R"(  split: {command: [split], outputs: [files, plan]}
  work:
    matrix:
      file: ${split.files[*]}
      kind: [a, b]
    command: [work, "${params.file}", "${inputs.file}", "${params.kind}", "${outputs.made}"]
    outputs: [made]
)";

TEST(OpenMatrix, keeps_the_step_until_the_values_are_known) {
  const auto pipeline = read_steps(split +
                                   "  all: {command: [all], inputs: {parts: \"work[*].made\"}, "
                                   "after: [work]}\n");
  ASSERT_EQ(pipeline.steps.size(), 3u);
  const auto& work = pipeline.steps[1];
  EXPECT_EQ(work.name, "work");
  ASSERT_TRUE(work.matrix);
  EXPECT_EQ(work.matrix->of, "work");
  ASSERT_EQ(work.matrix->axes.size(), 2u);
  EXPECT_EQ(work.matrix->axes[0].name, "file");
  EXPECT_EQ(work.matrix->axes[0].items->source, (SourceSpec{"split", "files"}));
  EXPECT_EQ(work.matrix->axes[1].values.size(), 2u);
  const auto& all = pipeline.steps[2];
  EXPECT_TRUE(all.inputs[0].gathered);
  EXPECT_THAT(all.inputs[0].sources, ElementsAre(SourceSpec{"work", "made"}));
  EXPECT_THAT(all.after, ElementsAre("work"));
}

TEST(OpenMatrix, is_shared_by_steps_that_name_it) {
  const auto pipeline = read_steps(
      split +
      "  next: {matrix: work, command: [next, \"${params.file}\"], inputs: {m: \"work[=].made\"}, "
      "when: \"${params.kind} == 'a' and ${work[=].made.good}\"}\n");
  const auto& next = pipeline.steps.at(2);
  EXPECT_EQ(next.matrix->of, "work");
  EXPECT_FALSE(next.inputs[0].gathered);
  EXPECT_THAT(next.inputs[0].sources, ElementsAre(SourceSpec{"work", "made"}));
  EXPECT_EQ(next.when->outputs.begin()->second.source.step, "work");
}

TEST(OpenMatrix, takes_a_list_in_a_member_of_an_output) {
  const auto pipeline = read_steps(
      "  split: {command: [split], outputs: [plan]}\n"
      "  work:\n    matrix:\n      n: ${split.plan.trials.0[*]}\n    command: [work]\n");
  EXPECT_THAT(pipeline.steps[1].matrix->axes[0].items->path, ElementsAre("trials", "0"));
}

TEST(OpenMatrix, reports_values_that_it_cannot_take) {
  const auto with_axis = [](const std::string& axis) {
    return problem_of(
        "  split: {command: [split], outputs: [files]}\n  work:\n    matrix:\n      "
        "file: " +
        axis + "\n    command: [work]\n");
  };
  EXPECT_THAT(with_axis("${split.files}"), HasSubstr("'file' must be `${STEP.OUTPUT[*]}`"));
  EXPECT_THAT(with_axis("${split.files}"), HasSubstr("did you mean `${split.files[*]}`?"));
  EXPECT_THAT(with_axis("${params.x[*]}"), HasSubstr("the step has no parameter 'x'"));
  EXPECT_THAT(with_axis("${split.fils[*]}"),
              HasSubstr("pipeline.yaml:6:13: error: step 'split' makes no output 'fils'"));
  EXPECT_THAT(with_axis("${splt.files[*]}"), HasSubstr("did you mean 'split'?"));
  EXPECT_THAT(with_axis("${work.x[*]}"), HasSubstr("makes no output 'x'"));
  EXPECT_THAT(problem_of("  a: {matrix: {c: [1]}, command: [a], outputs: [o]}\n  b:\n    matrix:\n"
                         "      x: ${a.o[*]}\n    command: [b]\n"),
              HasSubstr("step 'a' has a matrix itself"));
  EXPECT_THAT(problem_of(split + "  s2: {command: [x], inputs: {m: work.made}}\n"),
              HasSubstr("are known only when the run has made them"));
  EXPECT_THAT(problem_of(split + "  s2: {command: [x], inputs: {m: \"work[file=a].made\"}}\n"),
              HasSubstr("'work[*].made' takes all"));
  EXPECT_THAT(problem_of(split + "  s2: {command: [x], inputs: {m: \"work[=].made\"}}\n"),
              HasSubstr("are known only when the run has made them"));
  EXPECT_THAT(problem_of("  split: {command: [split], outputs: [files]}\n  work:\n    matrix:\n"
                         "      file: ${split.files[*]}\n      exclude: [{file: a}]\n"
                         "    command: [work]\n"),
              HasSubstr("`exclude` needs known values"));
  EXPECT_THAT(problem_of("  split: {command: [split], outputs: [files]}\n  work:\n    matrix:\n"
                         "      file: ${split.files[*]}\n    run_on: always\n"
                         "    command: [work]\n"),
              HasSubstr("has a `run_on`"));
}

TEST(OpenMatrix, is_reported_in_cycles) {
  EXPECT_THAT(problem_of("  split: {command: [split], inputs: {m: \"work[*].made\"}, outputs: "
                         "[files]}\n  work:\n    matrix:\n      file: ${split.files[*]}\n"
                         "    command: [work]\n    outputs: [made]\n"),
              HasSubstr("the matrix of 'work' takes its values from 'split'"));
}

}  // namespace
}  // namespace pipeline::spec

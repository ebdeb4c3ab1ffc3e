#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/identifier.hpp"
#include "spec/pipeline_file.hpp"
#include "support/error_text.hpp"

namespace pipeline::spec {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

PipelineSpec parse_steps(const std::string& steps) {
  return parse("name: x\nsteps:\n" + steps, "/nowhere/pipeline.yaml", {});
}

std::string matrix_error(const std::string& steps) {
  return test::error_text([&] { parse_steps(steps); });
}

std::vector<std::string> names_of(const PipelineSpec& pipeline) {
  std::vector<std::string> names;
  for (const auto& step : pipeline.steps) names.push_back(step.name);
  return names;
}

std::vector<std::string> sources_of(const StepSpec& step) {
  std::vector<std::string> names;
  for (const auto& source : step.inputs.at(0).sources)
    names.push_back(source.step + " " + source.output);
  return names;
}

const std::string train_matrix = R"(  train:
    matrix: {c: [0.1, 1], kernel: [rbf, linear]}
    command: [train, "${params.c}", "${params.kernel}"]
    parameters: {epochs: 5}
    outputs: [model]
)";

TEST(Matrix, makes_a_step_of_every_combination) {
  const auto pipeline = parse_steps(train_matrix);
  EXPECT_THAT(names_of(pipeline), ElementsAre("train.c-0.1.kernel-rbf", "train.c-0.1.kernel-linear",
                                              "train.c-1.kernel-rbf", "train.c-1.kernel-linear"));
  const auto& second = pipeline.steps[1];
  EXPECT_EQ(*second.instance->of, "train");
  EXPECT_THAT(second.instance->axes, ElementsAre("c", "kernel"));
  EXPECT_EQ(second.parameters.at("c"), 0.1);
  EXPECT_EQ(second.parameters.at("kernel"), "linear");
  EXPECT_EQ(second.parameters.at("epochs"), 5);
  EXPECT_EQ(second.line, 3u);
}

TEST(Matrix, an_axis_without_values_is_reported_wherever_it_stands) {
  for (const char* axes : {"{lr: 0.1, c: [1, 2]}", "{c: [1, 2], lr: 0.1}", "{lr: [], c: [1, 2]}",
                           "{lr: [[1]], c: [1, 2], exclude: [{c: 1}]}"})
    EXPECT_THAT(matrix_error("  t: {command: [x], matrix: " + std::string(axes) + "}\n"),
                HasSubstr("'lr'"))
        << axes;
}

TEST(Matrix, its_steps_share_their_settings_until_one_is_changed) {
  auto pipeline = parse_steps(train_matrix + "    settings: {docker: {user: ann}}\n");
  const auto& [first, second] =
      std::tie(std::as_const(pipeline.steps[0]), std::as_const(pipeline.steps[1]));
  EXPECT_EQ(&*first.settings, &*second.settings);
  pipeline.steps[0].settings->docker.user = "bob";
  EXPECT_EQ(first.settings->docker.user, "bob");
  EXPECT_EQ(second.settings->docker.user, "ann");
}

TEST(Matrix, its_steps_share_what_is_equal_until_one_is_changed) {
  auto pipeline = parse_steps(train_matrix + "    orchestrator: local\n");
  const auto& [first, second] =
      std::tie(std::as_const(pipeline.steps[0]), std::as_const(pipeline.steps[1]));
  EXPECT_EQ(first.command.arguments.begin(), second.command.arguments.begin());
  EXPECT_EQ(first.outputs.begin(), second.outputs.begin());
  EXPECT_EQ(&*first.orchestrator, &*second.orchestrator);
  pipeline.steps[0].outputs[0].temp = true;
  EXPECT_TRUE(first.outputs[0].temp);
  EXPECT_FALSE(second.outputs[0].temp);
}

TEST(Matrix, leaves_out_and_adds_combinations) {
  const auto pipeline = parse_steps(R"(  t:
    matrix:
      a: [1, 2]
      b: [x, y]
      exclude: [{a: 1, b: y}]
      include: [{a: 9, b: z}]
    command: [t]
)");
  EXPECT_THAT(names_of(pipeline), ElementsAre("t.a-1.b-x", "t.a-2.b-x", "t.a-2.b-y", "t.a-9.b-z"));
  EXPECT_THAT(names_of(parse_steps(
                  "  t: {matrix: {include: [{a: 1, b: 2}, {b: 4, a: 3}]}, command: [t]}\n")),
              ElementsAre("t.a-1.b-2", "t.a-3.b-4"));
}

TEST(Matrix, is_gathered_in_its_order) {
  const auto pipeline = parse_steps(
      train_matrix + "  choose: {command: [c], inputs: {models: \"train[*].model\"}}\n");
  const auto& choose = pipeline.steps.back();
  EXPECT_TRUE(choose.inputs[0].gathered);
  EXPECT_THAT(sources_of(choose),
              ElementsAre("train.c-0.1.kernel-rbf model", "train.c-0.1.kernel-linear model",
                          "train.c-1.kernel-rbf model", "train.c-1.kernel-linear model"));
}

TEST(Matrix, selects_one_of_its_steps_or_some) {
  const auto reads = [](const std::string& reference) {
    return parse_steps(train_matrix + "  one: {command: [c], inputs: {model: \"" + reference +
                       "\"}}\n")
        .steps.back();
  };
  EXPECT_THAT(sources_of(reads("train[c=1.0,kernel=rbf].model")),
              ElementsAre("train.c-1.kernel-rbf model"));
  EXPECT_FALSE(reads("train[c=1.0,kernel=rbf].model").inputs[0].gathered);
  EXPECT_THAT(sources_of(reads("train[3].model")), ElementsAre("train.c-1.kernel-linear model"));
  EXPECT_FALSE(reads("train[3].model").inputs[0].gathered);
  EXPECT_THAT(sources_of(reads("train[kernel=rbf,c=*].model")),
              ElementsAre("train.c-0.1.kernel-rbf model", "train.c-1.kernel-rbf model"));
  EXPECT_TRUE(reads("train[kernel=rbf,c=*].model").inputs[0].gathered);
}

TEST(Matrix, joins_another_matrix_pair_by_pair) {
  const auto pipeline = parse_steps(train_matrix + R"(  test:
    matrix: train
    command: [t]
    inputs: {model: "train[=].model"}
  best:
    matrix: {kernel: [linear, rbf]}
    command: [b]
    inputs: {models: "train[=,c=*].model"}
    after: ["test[c=1,=]"]
)");
  ASSERT_EQ(pipeline.steps.size(), 10u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(sources_of(pipeline.steps[4 + i]), ElementsAre(pipeline.steps[i].name + " model"));
    EXPECT_FALSE(pipeline.steps[4 + i].inputs[0].gathered);
  }
  EXPECT_THAT(sources_of(pipeline.steps[8]),
              ElementsAre("train.c-0.1.kernel-linear model", "train.c-1.kernel-linear model"));
  EXPECT_THAT(pipeline.steps[8].after, ElementsAre("test.c-1.kernel-linear"));
}

TEST(Matrix, in_after_means_all_of_its_steps) {
  const auto pipeline = parse_steps(train_matrix + "  last: {command: [l], after: [train]}\n");
  EXPECT_EQ(pipeline.steps.back().after.size(), 4u);
}

TEST(Matrix, has_no_option_for_the_parameter_of_an_axis) {
  try {
    parse("name: x\nsteps:\n" + train_matrix, "/nowhere/p.yaml",
          {.parameters = {{"train.c", "5"}}});
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'c' is an axis of the step's matrix"));
  }
}

TEST(Matrix, of_many_steps_that_read_all_of_many_is_refused_before_memory_is_gone) {
  std::string values;
  for (int i = 0; i < 2000; ++i) values += (i ? "," : "") + std::to_string(i);
  const auto steps = "  a: {matrix: {i: [" + values +
                     "]}, command: [a], outputs: [o]}\n  b: {matrix: a, command: [b], inputs: "
                     "{all: \"a[*].o\"}}\n";
  EXPECT_THAT(matrix_error(steps), HasSubstr("put one step in between"));
}

TEST(Matrix, of_ten_thousand_pairs_is_joined_without_comparing_each_with_each) {
  std::string rows, columns;
  for (int i = 0; i < 100; ++i)
    rows += (i ? "," : "") + std::to_string(i), columns += (i ? ",k" : "k") + std::to_string(i);
  const auto steps = "  a: {matrix: {i: [" + rows + "], j: [" + columns +
                     "]}, command: [a, \"${params.i}\"], outputs: [o]}\n" +
                     "  b: {matrix: a, command: [b], inputs: {one: \"a[=].o\"}, outputs: [o]}\n  "
                     "c: {command: [c], inputs: {all: \"b[*].o\"}}\n";
  const auto pipeline = parse_steps(steps);
  ASSERT_EQ(pipeline.steps.size(), 20'001u);
  EXPECT_THAT(sources_of(pipeline.steps[19'999]), ElementsAre("a.i-99.j-k99 o"));
  EXPECT_EQ(pipeline.steps.back().inputs[0].sources.size(), 10'000u);
}

std::string numbers(int count) {
  std::string list;
  for (int i = 0; i < count; ++i) list += (i ? "," : "") + std::to_string(i);
  return "[" + list + "]";
}

TEST(Matrix, copies_of_long_texts_are_refused_before_memory_is_gone) {
  const std::string text(200'000, 'x');
  const auto matrix = "matrix: {i: " + numbers(10'000) + "}";
  EXPECT_THAT(matrix_error("  a: {" + matrix + ", command: [a, " + text + "]}\n"),
              AllOf(HasSubstr(":3:15: error: the matrix of step 'a' takes too much memory"),
                    HasSubstr("10000 copies of 19")));
  EXPECT_THAT(matrix_error("  a: {" + matrix + ", command: [a], parameters: {p: " + text + "}}\n"),
              HasSubstr("put long texts into files"));
  EXPECT_THAT(matrix_error("  a: {" + matrix + ", command: [a], environment: {P: " + text + "}}\n"),
              HasSubstr("put long texts into files"));
  EXPECT_THAT(
      matrix_error("  a: {" + matrix + ", command: [a], services: {db: {image: i, command: [" +
                   text + "], ready: {port: 1}}}}\n"),
      HasSubstr("put long texts into files"));
  EXPECT_THAT(matrix_error("  a: {" + matrix + ", parameters: {p: " + text +
                           "}, command: [a], settings: {docker: {environment: {P: "
                           "\"${params.p}\"}}}}\n"),
              HasSubstr("put long texts into files"));
  EXPECT_THAT(matrix_error("  a: {matrix: {t: [" + text + "], i: " + numbers(10'000) +
                           "}, command: [a]}\n"),
              HasSubstr("the matrix of step 'a' takes too much memory"));
}

TEST(Matrix, may_have_a_hundred_thousand_small_steps) {
  const auto pipeline = parse_steps("  a: {matrix: {i: " + numbers(1000) + ", j: " + numbers(100) +
                                    "}, command: [a, \"${params.i}\", " + std::string(500, 'x') +
                                    "], parameters: {lr: 0.1}, outputs: [o]}\n");
  EXPECT_EQ(pipeline.steps.size(), 100'000u);
}

TEST(Matrix, of_many_steps_with_that_of_one_is_refused_before_memory_is_gone) {
  std::string steps =
      "  a: {matrix: {i: " + numbers(1000) + ", j: " + numbers(100) + "}, command: [a]}\n";
  for (int i = 0; i < 30; ++i) steps += "  b" + std::to_string(i) + ": {matrix: a, command: [b]}\n";
  EXPECT_THAT(matrix_error(steps),
              HasSubstr("all steps of a pipeline have at most 1 GiB together"));
}

TEST(Parameters, that_each_of_many_steps_takes_over_are_refused_before_memory_is_gone) {
  std::string text = "name: x\nparameters:\n";
  for (int i = 0; i < 10'000; ++i) text += "  p" + std::to_string(i) + ": 1\n";
  text += "steps:\n";
  for (int i = 0; i < 10'000; ++i) text += "  s" + std::to_string(i) + ": {command: [x]}\n";
  EXPECT_THAT(test::error_text([&] { parse(text, "/nowhere/pipeline.yaml", {}); }),
              HasSubstr("the parameters and settings that each step takes over"));
}

TEST(Parameters, that_are_a_thousand_times_in_a_text_are_refused_before_memory_is_gone) {
  std::string filled;
  for (int i = 0; i < 10'000; ++i) filled += "${params.p}";
  EXPECT_THAT(matrix_error("  a: {command: [a], parameters: {p: " + std::string(200'000, 'x') +
                           "}, wait: \"" + filled + "\"}\n"),
              HasSubstr("with its parameters, the text exceeds 1 MiB"));
}

}  // namespace
}  // namespace pipeline::spec

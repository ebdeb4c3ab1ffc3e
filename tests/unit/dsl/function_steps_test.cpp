// Functions as steps: their arguments, matrices over them, and what is wrong with them.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "unit/dsl/builder_fixture.hpp"

namespace pipeline {
namespace {

using nlohmann::json;
using testing::HasSubstr;

double number(double value, const std::string& text, bool flag) {
  return value + static_cast<double>(text.size()) + flag;
}
double sum(const std::vector<double>& values) { return values.empty() ? 0 : values[0]; }
double twice(double value) { return 2 * value; }
double repeated(double value, int count) { return value * count; }

TEST_F(Builder, functions_become_steps_of_this_program) {
  Pipeline pipeline{"functions", {.parameters = {{"unused", 1}}}};
  auto value = pipeline.add(step<number>({.arguments = {"value", "text", "flag"}, .version = "2"}),
                            param("start", 1), "5", true);
  pipeline.add(step<twice>(), value);
  const auto spec = dsl::build(pipeline, {{"start", "7.5"}});
  const auto& first = spec.steps[0];
  EXPECT_EQ(first.name, "number");
  EXPECT_EQ(json(first.parameters), (json{{"start", 7.5}, {"text", "5"}, {"flag", true}}))
      << "the step has only the parameters that its function takes";
  ASSERT_TRUE(first.program);
  EXPECT_EQ(first.program->version, "2");
  EXPECT_TRUE(first.program->program->executable.is_absolute());
  EXPECT_EQ(first.outputs[0].file_name, "result.json");
  EXPECT_EQ(std::get<std::string>(first.command.arguments.at(0).parts.at(0)), "--pipe-step");
  EXPECT_TRUE(*first.code && first.code->items().empty());
  EXPECT_EQ(spec.steps[1].inputs[0].sources[0].step, "number");
}

TEST_F(Builder, map_and_gather_are_a_matrix) {
  Pipeline pipeline{"fan"};
  auto values = pipeline.map(step<number>({.arguments = {"value", "text", "flag"}}),
                             each({0.5, 1.5}), each<std::string>({"a", "b"}), true);
  auto doubled = pipeline.map(step<twice>(), values);
  pipeline.add(step<sum>(), doubled);
  const auto spec = dsl::build(pipeline);
  ASSERT_EQ(spec.steps.size(), 9u);
  EXPECT_EQ(spec.steps[1].name, "number.value-0.5.text-b");
  EXPECT_EQ(spec.steps[1].parameters.at("text"), "b");
  EXPECT_EQ(spec.steps[5].inputs[0].sources[0].step, "number.value-0.5.text-b");
  EXPECT_FALSE(spec.steps[5].parameters.contains("text"));
  EXPECT_EQ(spec.steps[5].axis_value("text"), "b") << "for the index of what is gathered";
  EXPECT_TRUE(spec.steps[8].inputs[0].gathered);
  EXPECT_EQ(spec.steps[8].inputs[0].sources.size(), 4u);
}

std::vector<double> make_values() { return {1, 2}; }
struct SearchPoint {
  double rate;
  int depth;
};
std::vector<SearchPoint> make_points() { return {{0.1, 2}}; }
double at_point(const SearchPoint& point, double scale) { return point.rate * scale; }

TEST_F(Builder, map_over_a_vector_that_a_step_makes_is_a_matrix_over_its_items) {
  Pipeline pipeline{"grow"};
  auto values = pipeline.add(step<make_values>());
  auto doubled = pipeline.map(step<twice>(), values);
  auto again = pipeline.map(step(twice, {.name = "again"}), doubled);
  pipeline.add(step<sum>(), again);
  auto points = pipeline.add(step<make_points>());
  pipeline.map(step<at_point>({.arguments = {"point", "scale"}}), points, each({1.0, 2.0}));
  const auto spec = dsl::build(pipeline);
  ASSERT_EQ(spec.steps.size(), 6u);
  EXPECT_EQ(spec.steps[0].outputs[0].file_name, "result.json");
  const auto& matrix = spec.steps[1].matrix;
  ASSERT_TRUE(matrix);
  EXPECT_EQ(matrix->axes[0].name, "arg1");
  EXPECT_EQ(matrix->axes[0].items->source, (SourceSpec{"make_values", "result"}));
  EXPECT_EQ(spec.steps[2].matrix->of, "twice");
  EXPECT_FALSE(spec.steps[2].inputs[0].gathered);
  EXPECT_TRUE(spec.steps[3].inputs[0].gathered);
  EXPECT_EQ(spec.steps[5].matrix->axes[0].items->source, (SourceSpec{"make_points", "result"}));
  EXPECT_EQ(spec.steps[5].matrix->axes[1].values.size(), 2u);
}

TEST_F(Builder, matrix_over_an_output_is_the_same_in_yaml) {
  Pipeline pipeline{"grow"};
  auto split = pipeline.add(command("split", {"split", "${outputs.files}"}));
  auto work =
      pipeline.add(command("work", {"work", "${inputs.file}", "${params.kind}", "${outputs.made}"},
                           {.matrix = {{"file", "${split.files[*]}"}, {"kind", {"a", "b"}}}}));
  auto next =
      pipeline.add(command("next", {"next", "${inputs.made}", "${outputs.o}"}, {.matrix = "work"}),
                   {{"made", "work[=].made"}});
  pipeline.add(command("all", {"all", "${inputs.parts}"}), {{"parts", next.all("o")}});
  const auto from_program = dsl::build(pipeline);
  const auto from_yaml = spec::parse(R"(
name: grow
steps:
  split: {command: [split, "${outputs.files}"], outputs: [files]}
  work:
    matrix:
      file: ${split.files[*]}
      kind: [a, b]
    command: [work, "${inputs.file}", "${params.kind}", "${outputs.made}"]
    outputs: [made]
  next: {matrix: work, command: [next, "${inputs.made}", "${outputs.o}"], inputs: {made: "work[=].made"}, outputs: [o]}
  all: {command: [all, "${inputs.parts}"], inputs: {parts: "next[*].o"}}
)",
                                     "/nowhere/pipeline.yaml", {});
  ASSERT_EQ(from_program.steps.size(), from_yaml.steps.size());
  for (std::size_t i = 0; i < from_yaml.steps.size(); ++i) {
    const auto &one = from_program.steps[i], &other = from_yaml.steps[i];
    EXPECT_EQ(one.name, other.name);
    EXPECT_EQ(one.command, other.command);
    EXPECT_EQ(one.parameters, other.parameters);
    ASSERT_EQ(one.matrix.has_value(), other.matrix.has_value());
    if (!one.matrix) continue;
    EXPECT_EQ(one.matrix->of, other.matrix->of);
    ASSERT_EQ(one.matrix->axes.size(), other.matrix->axes.size());
    for (std::size_t k = 0; k < one.matrix->axes.size(); ++k) {
      EXPECT_EQ(one.matrix->axes[k].name, other.matrix->axes[k].name);
      EXPECT_EQ(one.matrix->axes[k].values, other.matrix->axes[k].values);
      EXPECT_EQ(one.matrix->axes[k].items, other.matrix->axes[k].items);
    }
  }
  EXPECT_EQ(from_program.steps[2].inputs[0].sources, from_yaml.steps[2].inputs[0].sources);
  EXPECT_EQ(from_program.steps[3].inputs[0].gathered, from_yaml.steps[3].inputs[0].gathered);
}

TEST_F(Builder, single_artifacts_can_be_gathered) {
  Pipeline pipeline{"gather"};
  std::vector<Artifact<double>> values;
  for (int i = 0; i < 3; ++i)
    values.push_back(
        pipeline.add(step(twice, {.name = "twice" + std::to_string(i)}), static_cast<double>(i)));
  pipeline.add(step<sum>(), values);
  const auto spec = dsl::build(pipeline);
  ASSERT_EQ(spec.steps[3].inputs[0].sources.size(), 3u);
  EXPECT_EQ(spec.steps[3].inputs[0].sources[2].step, "twice2");
}

TEST_F(Builder, errors_have_the_line_of_their_step) {
  Pipeline pipeline{"wrong"};
  pipeline.add(step(twice, {.name = "a.b"}), 1.0);
  const auto line = std::to_string(__LINE__ - 1);
  pipeline.add(step(twice, {.name = "same"}), param("x", 1.0));
  pipeline.add(step(twice, {.name = "same", .outputs = {"a", "b"}}), param("x", 2.0));
  const auto error = error_of(pipeline);
  EXPECT_THAT(error, HasSubstr("function_steps_test.cpp:" + line + ":"));
  EXPECT_THAT(error, HasSubstr("'a.b' cannot be a step's name"));
  EXPECT_THAT(error, HasSubstr("two steps are called 'same'"));
  EXPECT_THAT(error, HasSubstr("`outputs` names 2 results, but the function has 1"));
  EXPECT_THAT(error, HasSubstr("the parameter 'x' is 2.0 here, and 1.0 where it is used before"));
}

TEST_F(Builder, options_that_would_have_no_effect_are_errors) {
  Pipeline pipeline{"wrong"};
  pipeline.add(command("one", {"true"}, {.name = "other", .arguments = {"x"}}));
  pipeline.add(step(twice, {.name = "two", .parameters = {{"epochs", 5}}}), 1.0);
  const auto error = error_of(pipeline);
  EXPECT_THAT(error, HasSubstr("step 'one': `name` is 'other' in the options"));
  EXPECT_THAT(error, HasSubstr("step 'one': `arguments` is for functions"));
  EXPECT_THAT(error, HasSubstr("step 'two': `parameters` is for commands"));
}

TEST_F(Builder, artifacts_of_another_pipeline_cannot_be_gathered) {
  Pipeline other{"other"}, pipeline{"wrong"};
  const auto own = pipeline.add(step(twice, {.name = "own"}), 1.0);
  const auto foreign = other.add(step(twice, {.name = "foreign"}), 1.0);
  pipeline.add(step<sum>(), std::vector{own, foreign});
  EXPECT_THAT(error_of(pipeline),
              HasSubstr("from 'foreign.result', which no step of this pipeline makes"));
}

TEST_F(Builder, parameter_that_a_function_cannot_take_is_refused) {
  Pipeline pipeline{"wrong"};
  pipeline.add(step<twice>(), param("x", 1.0));
  EXPECT_THAT(error_of(pipeline, {{"x", "much"}}),
              HasSubstr("--param x=much: 'x' is a number, such as 1.0, not the text 'much'"));
  EXPECT_THAT(error_of(pipeline, {{"y", "1"}}), HasSubstr("--param y: there is no such parameter"));
  EXPECT_EQ(dsl::build(pipeline, {{"x", "3"}}).steps[0].parameters.at("x"), 3);
}

double limited(unsigned count, std::optional<std::int8_t> small) {
  return count + small.value_or(0);
}

TEST_F(Builder, integer_that_the_type_of_its_argument_cannot_hold_is_refused) {
  const auto error_with = [&](auto count, auto small) {
    Pipeline pipeline{"wrong"};
    pipeline.add(step<limited>({.arguments = {"count", "small"}}), count, small);
    return error_of(pipeline);
  };
  EXPECT_EQ(error_with(1, 127), "no error");
  EXPECT_EQ(error_with(1, std::nullopt), "no error");
  EXPECT_THAT(error_with(-1, 1),
              HasSubstr("the parameter 'count' of step 'limited' is of type unsigned int: "
                        "expected an integer that is not negative, found -1"));
  EXPECT_THAT(error_with(5'000'000'000, 1), HasSubstr("expected an integer from 0 to 4294967295"));
  EXPECT_THAT(error_with(1u, 128), HasSubstr("expected an integer from -128 to 127, found 128"));

  Pipeline pipeline{"mapped"};
  pipeline.map(step<limited>({.arguments = {"count", "small"}}), each({1, -1}), std::nullopt);
  EXPECT_THAT(error_of(pipeline), HasSubstr("step 'limited': 'count' is of type unsigned int: "
                                            "expected an integer that is not negative, found -1"));
}

TEST_F(Builder, parameter_that_all_instances_share_is_refused_once) {
  Pipeline pipeline{"wrong"};
  pipeline.map(step<repeated>({.arguments = {"value", "count"}}), each({0.5, 1.5}),
               param("count", 2));
  const auto error = error_of(pipeline, {{"count", "2.5"}});
  EXPECT_THAT(error, HasSubstr("the parameter 'count' of step 'repeated' is of type int"));
  EXPECT_EQ(error.find("2.5"), error.rfind("2.5")) << error;
}

TEST_F(Builder, identity_depends_on_the_declarations_alone) {
  const auto made = [](double x, std::string version) {
    Pipeline pipeline{"identity"};
    pipeline.add(step<twice>({.version = std::move(version)}), x);
    return dsl::identity_of(pipeline);
  };
  EXPECT_EQ(made(1, "1"), made(1, "1"));
  EXPECT_NE(made(1, "1"), made(2, "1"));
  EXPECT_NE(made(1, "1"), made(1, "2"));
}

TEST_F(Builder, text_that_is_not_utf8_is_refused_at_its_step) {
  Pipeline pipeline{"wrong"};
  pipeline.add(step<number>({.arguments = {"value", "text", "flag"}}), 1.0, "a\xff", true);
  EXPECT_THAT(error_of(pipeline), HasSubstr("error: the text of 'text' is not UTF-8"));
  EXPECT_THAT(error_of(pipeline), HasSubstr("function_steps_test.cpp:"));
}

double thrice(double value) { return 3 * value; }

TEST_F(Builder, another_function_as_the_same_step_is_another_step) {
  const auto with = [](double (*function)(double), std::string version) {
    Pipeline pipeline{"variants"};
    pipeline.add(step(function, {.name = "times", .version = std::move(version)}), 1.0);
    return pipeline;
  };
  const auto address = [&](const Pipeline& pipeline) {
    return dsl::build(pipeline).steps[0].program->address;
  };
  EXPECT_FALSE(address(with(twice, "")).empty());
  EXPECT_EQ(address(with(twice, "")), address(with(twice, "")));
  EXPECT_NE(address(with(twice, "")), address(with(thrice, "")));
  EXPECT_NE(dsl::identity_of(with(twice, "")), dsl::identity_of(with(thrice, "")));
  EXPECT_EQ(address(with(twice, "1")), "") << "the version alone decides";
  EXPECT_EQ(dsl::identity_of(with(twice, "1")), dsl::identity_of(with(thrice, "1")));
}

struct Layers {
  std::vector<int> sizes;
  std::map<std::string, double> rates;
};
double build_layers(const std::vector<std::string>& names, const Layers& layers) {
  return static_cast<double>(names.size() + layers.sizes.size());
}

TEST_F(Builder, lists_and_structs_are_parameters_of_their_own_type) {
  Pipeline pipeline{"lists"};
  pipeline.add(step<build_layers>({.arguments = {"names", "layers"}}),
               param("names", std::vector<std::string>{"a", "b c"}),
               Layers{{8, 16}, {{"lr", 0.1}}});
  const auto spec = dsl::build(pipeline, {{"names", "[x]"}, {"build_layers.layers.rates.lr", "1"}});
  EXPECT_EQ(*spec.steps[0].parameters.at("names"), json({"x"}));
  EXPECT_EQ(*spec.steps[0].parameters.at("layers"),
            (json{{"sizes", {8, 16}}, {"rates", {{"lr", 1}}}}));
  EXPECT_THAT(error_of(pipeline, {{"names", "[1]"}}),
              HasSubstr("the parameter 'names' of step 'build_layers' is of type"));
  EXPECT_THAT(error_of(pipeline, {{"names", "x"}}), HasSubstr("'names' is a list, such as"));
}

TEST_F(Builder, a_matrix_over_a_list_that_is_a_parameter_is_that_of_yaml) {
  const StringList none = std::vector<std::string>{};
  Pipeline pipeline{"each", {.parameters = {{"names", {"a", "b"}}}, .root = folder_.path()}};
  pipeline.add(command("greet", {"echo", "${params.name}"},
                       {.matrix = {{"name", "${params.names[*]}"}}, .code = none}));
  const auto wanted = described(from_yaml(R"(
name: each
parameters: {names: [a, b]}
steps:
  greet: {matrix: {name: "${params.names[*]}"}, command: [echo, "${params.name}"], code: []}
)"));
  EXPECT_EQ(wanted["steps"].size(), 2u);
  EXPECT_EQ(described(dsl::build(pipeline)), wanted);
}

}  // namespace
}  // namespace pipeline

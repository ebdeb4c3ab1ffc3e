// Steps that are repeated in rounds.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "dsl/document.hpp"
#include "spec/yaml_writer.hpp"
#include "unit/dsl/builder_fixture.hpp"

namespace pipeline {
namespace {

using testing::HasSubstr;

struct Best {
  double x = 0;
  double loss = 10;
};
Best guess() { return {}; }
std::vector<double> propose_points(const Best& best) { return {best.x}; }
double try_point(const double& point) { return point; }
std::pair<Best, bool> choose_best(const Best& best, const std::vector<double>&) {
  return {best, true};
}
double loss_of(const Best& best) { return best.loss; }

TEST_F(Builder, steps_can_be_repeated_in_rounds) {
  Pipeline search{"search", {.root = folder_.path()}};
  const auto first = search.add(step<guess>());
  const auto best = search.repeat({.max = 20}, first, [&](Artifact<Best> taken) {
    const auto points = search.add(step<propose_points>(), taken);
    return search.add(step<choose_best>(), taken, search.map(step<try_point>(), points));
  });
  search.add(step<loss_of>(), best);
  const auto spec = dsl::build(search);
  ASSERT_EQ(spec.steps.size(), 5u);
  const auto& propose = spec.steps[1];
  ASSERT_TRUE(propose.repeat);
  EXPECT_EQ(propose.repeat->of, "propose_points");
  EXPECT_EQ(propose.repeat->max, 20u);
  EXPECT_EQ(propose.repeat->until->text, "${choose_best.result2}");
  EXPECT_EQ(propose.inputs[0].sources[0], (SourceSpec{"guess", "result"}));
  EXPECT_EQ(*propose.inputs[0].then, (SourceSpec{"choose_best", "result1"}));
  const auto& trial = spec.steps[2];
  EXPECT_EQ(trial.name, "try_point");
  EXPECT_EQ(trial.repeat->of, "propose_points");
  EXPECT_EQ(trial.matrix->axes[0].items->source, (SourceSpec{"propose_points", "result"}));
  EXPECT_EQ(*spec.steps[3].inputs[0].then, (SourceSpec{"choose_best", "result1"}));
  EXPECT_FALSE(spec.steps[4].repeat);
  EXPECT_EQ(spec.steps[4].inputs[0].sources[0], (SourceSpec{"choose_best", "result1"}));
}

constexpr auto rounds_yaml = R"(
name: rounds
steps:
  start: {command: [start, "${outputs.state}"], outputs: {state: state.json}, code: []}
  fit:
    repeat: {until: "${fit.state.loss} < 0.1", max: 7}
    command: [fit, "${inputs.state}", "${params.round}", "${outputs.state}"]
    inputs: {state: {first: start.state, then: fit.state}}
    outputs: {state: state.json}
    code: []
  note: {repeat: fit, command: [note, "${inputs.state}"], inputs: {state: fit.state}, code: []}
  use: {command: [use, "${inputs.state}"], inputs: {state: fit.state}, code: []}
)";

TEST_F(Builder, rounds_in_yaml_and_in_cpp_are_the_same_plan) {
  const StringList none = std::vector<std::string>{};
  Pipeline rounds{"rounds", {.root = folder_.path()}};
  const auto start = rounds.add(command("start", {"start", "${outputs.state}"},
                                        {.outputs = {{"state", "state.json"}}, .code = none}));
  const auto state = rounds.repeat(
      {.until = "${fit.state.loss} < 0.1", .max = 7}, start["state"], [&](Artifact<File> taken) {
        const auto fit = rounds.add(
            command("fit", {"fit", "${inputs.state}", "${params.round}", "${outputs.state}"},
                    {.outputs = {{"state", "state.json"}}, .code = none}),
            {{"state", taken}});
        rounds.add(command("note", {"note", "${inputs.state}"}, {.code = none}),
                   {{"state", fit["state"]}});
        return fit["state"];
      });
  rounds.add(command("use", {"use", "${inputs.state}"}, {.code = none}), {{"state", state}});
  const auto wanted = described(from_yaml(rounds_yaml));
  EXPECT_EQ(described(dsl::build(rounds)), wanted);
  EXPECT_EQ(described(from_yaml(spec::to_yaml(dsl::document_of(rounds).root))), wanted);
}

TEST_F(Builder, mistakes_about_rounds_are_reported) {
  Pipeline search{"search", {.root = folder_.path()}};
  const auto first = search.add(step([] { return std::vector<double>{1}; }, {.name = "first"}));
  search.repeat({.max = 2}, first, [&](Artifact<std::vector<double>> taken) {
    search.map(step<try_point>(), taken);
    return search.add(step([](const std::vector<double>& x) { return x; }, {.name = "next"}),
                      taken);
  });
  EXPECT_THAT(error_of(search), HasSubstr("map() iterates over the artifact that a round takes"));
}

}  // namespace
}  // namespace pipeline

#include "dsl/builder.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "dsl/document.hpp"
#include "settings/settings.hpp"
#include "spec/pipeline_file.hpp"
#include "spec/yaml_writer.hpp"

namespace pipeline {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using namespace literals;

/// All of a spec that a plan depends on.
json described(const PipelineSpec& pipeline) {
  json all{{"name", pipeline.name},
           {"description", pipeline.description},
           {"parameters", pipeline.parameters},
           {"execution_mode", static_cast<int>(pipeline.execution_mode)},
           {"tags", pipeline.tags}};
  for (const auto& step : pipeline.steps) {
    json entry{{"name", step.name},
               {"description", step.description},
               {"shell", step.command.shell},
               {"interpreter", step.command.interpreter},
               {"parameters", step.parameters},
               {"after", step.after},
               {"when", step.when ? step.when->text : ""},
               {"run_on", static_cast<int>(step.run_on)},
               {"code", step.code.items()},
               {"environment", json::object()},
               {"settings", settings::to_json(step.settings)},
               {"retry", settings::to_json(step.retry)},
               {"timeout", step.timeout.value_or(Duration{}).count()},
               {"stalled_after", step.stalled_after.value_or(Duration{}).count()},
               {"cache", step.cache}};
    for (const auto& argument : step.command.arguments)
      for (const auto& part : argument.parts)
        entry["command"].push_back(
            part.index() == 0 ? std::get<0>(part)
                              : std::to_string(static_cast<int>(std::get<1>(part).placeholder)) +
                                    std::get<1>(part).name);
    for (const auto& [name, value] : step.environment)
      entry["environment"][name] = value ? json(*value) : json();
    for (const auto& secret : step.secrets)
      entry["secrets"].push_back({secret.name, secret.file.value_or("")});
    for (const auto& output : step.outputs)
      entry["outputs"].push_back({output.name, output.file_name});
    for (const auto& input : step.inputs) {
      for (const auto& source : input.sources)
        entry["inputs"].push_back({input.name, input.gathered, source.step, source.output});
      if (input.then) entry["then"].push_back({input.name, input.then->step, input.then->output});
    }
    if (step.repeat)
      entry["repeat"] = {step.repeat->of, step.repeat->max,
                         step.repeat->until ? step.repeat->until->text : ""};
    all["steps"].push_back(std::move(entry));
  }
  return all;
}

class Builder : public testing::Test {
 protected:
  PipelineSpec from_yaml(const std::string& text) {
    return spec::parse(text, folder_.path() / "pipeline.yaml");
  }
  std::string error_of(const Pipeline& pipeline,
                       const std::map<std::string, std::string>& parameters = {}) {
    try {
      dsl::build(pipeline, parameters);
    } catch (const core::InputError& error) {
      return error.what();
    }
    return "no error";
  }
  core::TemporaryFolder folder_;
};

constexpr auto yaml = R"(
name: digits
description: all that YAML can say
tags: [a, b]
execution_mode: fail_fast
parameters: {test_size: 0.25, title: "5"}
settings:
  docker: {parent_image: "python:3.11-slim-bookworm", requirements: [numpy==1.26.4], environment: {A: "1"}}
retry: {max_retries: 1}
timeout: 10m
steps:
  load:
    command: [python, load.py, --out, "${outputs.data}", --size, "${params.test_size}"]
    outputs: {data: data.csv}
    code: []
    environment: {MODE: fast, HOME: null}
    secrets: [TOKEN]
    cache: false
  train:
    description: once for each c
    matrix: {c: [0.1, 1.0]}
    command: python train.py ${inputs.data} ${params.c} ${outputs.model}
    inputs: {data: load.data}
    outputs: [model]
    code: []
    settings:
      docker: {apt_packages: [git], requirements: []}
      resources: {cpu_count: 2, memory: 8GiB}
    stalled_after: 10m
    retry: {stalled: true, max_retries: 3, delay: 5s, backoff: 2, max_infrastructure_retries: 0, on_oom: {memory: x2, max: 32GiB}}
    timeout: 90s
  compare:
    command: [sh, -c, "ls ${inputs.models}"]
    inputs: {models: "train[*].model"}
    after: [load]
    code: []
)";

TEST_F(Builder, the_same_pipeline_as_yaml_and_as_cpp_is_the_same_plan) {
  Pipeline digits{"digits",
                  {.description = "all that YAML can say",
                   .parameters = {{"test_size", 0.25}, {"title", "5"}},
                   .docker = {.parent_image = "python:3.11-slim-bookworm",
                              .requirements = {"numpy==1.26.4"},
                              .environment = {{"A", "1"}}},
                   .retry = {.max_retries = 1},
                   .timeout = 10_min,
                   .tags = {"a", "b"},
                   .execution_mode = ExecutionMode::fail_fast,
                   .root = folder_.path()}};
  auto load = digits.add(command(
      "load", {"python", "load.py", "--out", "${outputs.data}", "--size", "${params.test_size}"},
      {.outputs = {{"data", "data.csv"}},
       .code = std::vector<std::string>{},
       .environment = {{"MODE", "fast"}, {"HOME", std::nullopt}},
       .secrets = {{.name = "TOKEN"}},
       .cache = false}));
  auto train = digits.add(
      shell("train", "python train.py ${inputs.data} ${params.c} ${outputs.model}",
            {.description = "once for each c",
             .matrix = {{"c", {0.1, 1.0}}},
             .code = std::vector<std::string>{},
             .docker = {.requirements = std::vector<std::string>{}, .apt_packages = {"git"}},
             .resources = {.cpu_count = 2, .memory = 8_GiB},
             .retry = {.max_retries = 3,
                       .delay = 5_s,
                       .backoff = 2,
                       .max_infrastructure_retries = 0,
                       .on_oom = {.memory = 2, .max = 32_GiB},
                       .stalled = true},
             .timeout = 90_s,
             .stalled_after = 10_min}),
      {{"data", load["data"]}});
  digits.add(command("compare", {"sh", "-c", "ls ${inputs.models}"},
                     {.after = {load}, .code = std::vector<std::string>{}}),
             {{"models", train.all("model")}});

  const auto by_hand = described(from_yaml(yaml));
  EXPECT_EQ(described(dsl::build(digits)), by_hand);
  EXPECT_EQ(described(from_yaml(spec::to_yaml(dsl::document_of(digits).root))), by_hand)
      << "and what it exports is the same again";
}

TEST_F(Builder, conditions_are_those_of_yaml) {
  Pipeline gate{"gate", {.parameters = {{"least", 0.9}}, .root = folder_.path()}};
  auto metrics = gate.add(shell("metrics", "echo {} > ${outputs.metrics}"));
  auto good = gate.add(command("good", {"good", "${outputs.good}"}), {});
  gate.add(shell("deploy", "deploy", {.when = good.as<bool>("good")}));
  gate.add(
      shell("publish", "publish",
            {.when = "${metrics.metrics.accuracy} > ${params.least}", .run_on = RunOn::always}));
  gate.add(shell("alarm", "alarm", {.run_on = RunOn::failure}));
  const auto by_hand = described(from_yaml(R"(
name: gate
parameters: {least: 0.9}
steps:
  metrics: {command: "echo {} > ${outputs.metrics}", outputs: [metrics]}
  good: {command: [good, "${outputs.good}"], outputs: [good]}
  deploy: {command: deploy, when: "${good.good}"}
  publish: {command: publish, when: "${metrics.metrics.accuracy} > ${params.least}", run_on: always}
  alarm: {command: alarm, run_on: failure}
)"));
  EXPECT_EQ(described(dsl::build(gate)), by_hand);
  EXPECT_EQ(by_hand["steps"][4]["after"], (json{"metrics", "good", "deploy"}))
      << "what has no `after` comes after all others";
  EXPECT_EQ(by_hand["steps"][4]["cache"], false);
  EXPECT_EQ(described(from_yaml(spec::to_yaml(dsl::document_of(gate).root))), by_hand);
}

TEST_F(Builder, shells_and_parameters_are_those_of_yaml) {
  Pipeline one{"one",
               {.parameters = {{"lr", 0.1}, {"seed", 7}},
                .code = std::vector<std::string>{},
                .shell = {"bash"},
                .root = folder_.path()}};
  one.add(shell("named", "echo ${params.lr} | cat", {}));
  one.add(shell("taken", "run",
                {.parameters = {{"own", 1}, {"seed", nullptr}}, .shell = {"sh", "-c"}}));
  one.add(shell("all", "run", {.all_parameters = true, .shell = {"sh"}}));
  const auto by_hand = described(from_yaml(R"(
name: one
parameters: {lr: 0.1, seed: 7}
code: []
shell: bash
steps:
  named: {command: "echo ${params.lr} | cat"}
  taken: {command: run, parameters: {own: 1, seed: }, shell: [sh, -c]}
  all: {command: run, parameters: all, shell: sh}
)"));
  EXPECT_EQ(described(dsl::build(one)), by_hand);
  EXPECT_EQ(described(from_yaml(spec::to_yaml(dsl::document_of(one).root))), by_hand);
}

TEST_F(Builder, a_script_has_the_parameters_whose_variables_it_reads) {
  Pipeline one{"one", {.parameters = {{"lr", 0.1}, {"seed", 7}}, .root = folder_.path()}};
  one.add(script("report", {"sh"}, "echo $PIPE_PARAM_SEED"));
  EXPECT_EQ(described(dsl::build(one))["steps"][0]["parameters"], (json{{"seed", 7}}));
}

TEST_F(Builder, every_way_to_ask_for_gpus_is_the_same_plan_in_yaml_and_cpp) {
  const std::vector<std::pair<std::string, ResourceSettings>> ways{
      {"{gpu_count: 2, gpu_class: A100, gpu_memory: 40GiB, compute_capability: '8.0'}",
       {.gpu_count = 2, .gpu_class = "A100", .gpu_memory = 40_GiB, .compute_capability = "8.0"}},
      {"{accelerator: gpu}", {.accelerator = Accelerator::gpu}},
      {"{accelerator: auto, devices: 2, auto_select_gpus: true}",
       {.accelerator = Accelerator::automatic, .devices = 2, .auto_select_gpus = true}},
      {"{devices: [1, 3]}", {.devices = {1, 3}}},
      {"{devices: '1, 3'}", {.devices = "1, 3"}},
      {"{devices: -1, preflight: off}", {.devices = -1, .preflight = Preflight::off}},
      {"{devices: [GPU-8932f937]}", {.devices = {"GPU-8932f937"}}},
      {"{gpus: 'device=0,1'}", {.gpus = "device=0,1"}},
      {"{gpu_count: 1, instance_type: g5.xlarge, placement_constraints: "
       "['attribute:ecs.instance-type == g5.xlarge'], shm_size: 1GiB}",
       {.shm_size = 1_GiB,
        .gpu_count = 1,
        .instance_type = "g5.xlarge",
        .placement_constraints = {"attribute:ecs.instance-type == g5.xlarge"}}},
  };
  for (const auto& [text, resources] : ways) {
    Pipeline pipeline{"gpus", {.root = folder_.path()}};
    pipeline.add(command("smi", {"nvidia-smi"}, {.resources = resources}));
    const auto by_hand = described(from_yaml(
        "name: gpus\nsteps:\n  smi:\n    command: [nvidia-smi]\n    settings: {resources: " + text +
        "}\n"));
    EXPECT_EQ(described(dsl::build(pipeline)), by_hand);
    EXPECT_FALSE(by_hand["steps"][0]["settings"]["resources"].empty()) << text;
    EXPECT_EQ(described(from_yaml(spec::to_yaml(dsl::document_of(pipeline).root))), by_hand)
        << "exported";
  }
}

TEST_F(Builder, run_args_and_installer_options_are_those_of_yaml) {
  Pipeline pipeline{"json", {.root = folder_.path()}};
  pipeline.add(command(
      "true", {"true"},
      {.docker = {.python_package_installer_args = {{"index-url", "https://index.example/simple"},
                                                    {"no-deps", true}},
                  .run_args = {{"cap_add", {"SYS_PTRACE"}},
                               {"ulimits", {{"nofile", {{"soft", 1024}, {"hard", 2048}}}}}}}}));
  EXPECT_EQ(described(dsl::build(pipeline)), described(from_yaml(R"(
name: json
steps:
  "true":
    command: ["true"]
    settings:
      docker:
        python_package_installer_args: {index-url: "https://index.example/simple", no-deps: true}
        run_args: {cap_add: [SYS_PTRACE], ulimits: {nofile: {soft: 1024, hard: 2048}}}
)")));
}

TEST_F(Builder, settings_of_a_cluster_are_those_of_yaml) {
  Pipeline pipeline{
      "cluster",
      {.kubernetes = {.node_selectors = {{"pool", "gpu"}}, .pod_startup_timeout = 30_min},
       .root = folder_.path()}};
  pipeline.add(command(
      "true", {"true"},
      {.kubernetes = {.affinity = {{"nodeAffinity",
                                    {{"preferredDuringSchedulingIgnoredDuringExecution",
                                      Json(std::vector<int>{})}}}},
                      .tolerations = {"spot:NoExecute", {{"key", "pool"}, {"operator", "Exists"}}},
                      .resources = {.limits = {{"memory", "8Gi"}}},
                      .env = {"TOKEN=secret/hugging-face/token"},
                      .volumes = {"pvc/datasets:/data:ro", "configmap/conf:/etc/conf"},
                      .image_pull_secrets = {"registry"},
                      .container_security_context = {{"privileged", true}},
                      .active_deadline_seconds = 3600,
                      .job_patch = {{"spec", {{"suspend", true}}}}}}));
  const auto by_hand = described(from_yaml(R"(
name: cluster
settings:
  kubernetes: {node_selectors: {pool: gpu}, pod_startup_timeout: 30m}
steps:
  "true":
    command: ["true"]
    settings:
      kubernetes:
        affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}
        tolerations: [spot:NoExecute, {key: pool, operator: Exists}]
        resources: {limits: {memory: 8Gi}}
        env: [TOKEN=secret/hugging-face/token]
        volumes: [pvc/datasets:/data:ro, configmap/conf:/etc/conf]
        image_pull_secrets: [registry]
        container_security_context: {privileged: true}
        active_deadline_seconds: 3600
        job_patch: {spec: {suspend: true}}
)"));
  EXPECT_EQ(described(dsl::build(pipeline)), by_hand);
  EXPECT_EQ(by_hand["steps"][0]["settings"]["kubernetes"]["tolerations"].size(), 2u);
  EXPECT_EQ(described(from_yaml(spec::to_yaml(dsl::document_of(pipeline).root))), by_hand)
      << "exported";
}

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
      << "only what the function takes";
  ASSERT_TRUE(first.program);
  EXPECT_EQ(first.program->version, "2");
  EXPECT_TRUE(first.program->program->executable.is_absolute());
  EXPECT_EQ(first.outputs[0].file_name, "result.json");
  EXPECT_EQ(std::get<std::string>(first.command.arguments.at(0).parts.at(0)), "--pipe-step");
  EXPECT_TRUE(first.code && first.code.items().empty());
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

TEST_F(Builder, what_is_wrong_is_told_at_the_line_of_its_step) {
  Pipeline pipeline{"wrong"};
  pipeline.add(step(twice, {.name = "a.b"}), 1.0);
  const auto line = std::to_string(__LINE__ - 1);
  pipeline.add(step(twice, {.name = "same"}), param("x", 1.0));
  pipeline.add(step(twice, {.name = "same", .outputs = {"a", "b"}}), param("x", 2.0));
  const auto error = error_of(pipeline);
  EXPECT_THAT(error, HasSubstr("builder_test.cpp:" + line + ":"));
  EXPECT_THAT(error, HasSubstr("'a.b' cannot be a step's name"));
  EXPECT_THAT(error, HasSubstr("two steps are called 'same'"));
  EXPECT_THAT(error, HasSubstr("`outputs` names 2 results, but the function has 1"));
  EXPECT_THAT(error, HasSubstr("the parameter 'x' is 2.0 here, and 1.0 where it is used before"));
}

TEST_F(Builder, parameter_that_a_function_cannot_take_is_refused) {
  Pipeline pipeline{"wrong"};
  pipeline.add(step<twice>(), param("x", 1.0));
  EXPECT_THAT(error_of(pipeline, {{"x", "much"}}),
              HasSubstr("--param x=much: 'x' is a number, such as 1.0, not the text 'much'"));
  EXPECT_THAT(error_of(pipeline, {{"y", "1"}}), HasSubstr("--param y: there is no such parameter"));
  EXPECT_EQ(dsl::build(pipeline, {{"x", "3"}}).steps[0].parameters.at("x"), 3);
}

TEST_F(Builder, parameter_that_all_instances_share_is_refused_once) {
  Pipeline pipeline{"wrong"};
  pipeline.map(step<repeated>({.arguments = {"value", "count"}}), each({0.5, 1.5}),
               param("count", 2));
  const auto error = error_of(pipeline, {{"count", "2.5"}});
  EXPECT_THAT(error, HasSubstr("the parameter 'count' of step 'repeated' is of type int"));
  EXPECT_EQ(error.find("2.5"), error.rfind("2.5")) << error;
}

TEST_F(Builder, identity_follows_what_is_declared) {
  const auto made = [](double x, std::string version) {
    Pipeline pipeline{"identity"};
    pipeline.add(step<twice>({.version = std::move(version)}), x);
    return dsl::identity_of(pipeline);
  };
  EXPECT_EQ(made(1, "1"), made(1, "1"));
  EXPECT_NE(made(1, "1"), made(2, "1"));
  EXPECT_NE(made(1, "1"), made(1, "2"));
}

TEST(Yaml, texts_that_look_like_something_else_are_quoted) {
  Pipeline pipeline{"yaml"};
  pipeline.add(command("echo", {"echo", "true", "5", "a: b", "${outputs.x}", "line\nbreak", ""}));
  const auto text = spec::to_yaml(dsl::document_of(pipeline).root);
  EXPECT_THAT(text, HasSubstr(R"([echo, "true", "5", "a: b", "${outputs.x}", "line\nbreak", ""])"));
}

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

TEST_F(Builder, repeats_steps_in_rounds) {
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
  EXPECT_EQ(propose.inputs[0].then, (SourceSpec{"choose_best", "result1"}));
  const auto& trial = spec.steps[2];
  EXPECT_EQ(trial.name, "try_point");
  EXPECT_EQ(trial.repeat->of, "propose_points");
  EXPECT_EQ(trial.matrix->axes[0].items->source, (SourceSpec{"propose_points", "result"}));
  EXPECT_EQ(spec.steps[3].inputs[0].then, (SourceSpec{"choose_best", "result1"}));
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

TEST_F(Builder, says_what_a_round_cannot_take) {
  Pipeline search{"search", {.root = folder_.path()}};
  const auto first = search.add(step([] { return std::vector<double>{1}; }, {.name = "first"}));
  search.repeat({.max = 2}, first, [&](Artifact<std::vector<double>> taken) {
    search.map(step<try_point>(), taken);
    return search.add(step([](const std::vector<double>& x) { return x; }, {.name = "next"}),
                      taken);
  });
  EXPECT_THAT(error_of(search), HasSubstr("map() goes over what a round takes"));
}

}  // namespace
}  // namespace pipeline

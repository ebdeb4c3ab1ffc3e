// A pipeline declared by a program is the same plan as one in YAML.
#include <gmock/gmock.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "dsl/document.hpp"
#include "spec/yaml_writer.hpp"
#include "unit/dsl/builder_fixture.hpp"

namespace pipeline {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using namespace literals;

constexpr auto yaml = R"(
name: digits
description: all that YAML can say
tags: [a, b]
headline: [train.loss]
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
                   .headline = {"train.loss"},
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
      << "the exported file is the same pipeline again";
}

TEST_F(Builder, data_at_addresses_is_that_of_yaml) {
  const std::string digest(64, 'a');
  Pipeline data{"data", {.root = folder_.path()}};
  data.add(shell("a", "cat ${inputs.page} ${inputs.table} ${inputs.images} ${inputs.object}"),
           {{"page", "https://host/x"},
            {"table", Url{.url = "https://host/y?z", .sha256 = digest}},
            {"images", Url{.url = "s3://team/images/"}},
            {"object", Url{.url = "s3://team/a b", .version = "v1"}}});
  EXPECT_EQ(described(dsl::build(data)), described(from_yaml(R"(
name: data
steps:
  a:
    command: cat ${inputs.page} ${inputs.table} ${inputs.images} ${inputs.object}
    inputs:
      images: s3://team/images/
      object: {url: s3://team/a b, version: v1}
      page: https://host/x
      table: {url: "https://host/y?z", sha256: )" + digest + R"(}
)")));
}

TEST_F(Builder, versions_metrics_and_published_artifacts_are_those_of_yaml) {
  Pipeline pipeline{"p", {.root = folder_.path()}};
  pipeline.add(command("score", {"score", "${inputs.known}", "${outputs.scores}"},
                       {.outputs = {Output("scores", "scores.json").as_metrics()},
                        .code = StringList::none(),
                        .version = "2"}),
               {{"known", Published{"optimum", true}}});
  const auto from_program = dsl::build(pipeline);
  const auto from_text = from_yaml(R"(
name: p
steps:
  score:
    command: [score, "${inputs.known}", "${outputs.scores}"]
    inputs: {known: {artifact: optimum, optional: true}}
    outputs: {scores: {file: scores.json, metrics: true}}
    code: []
    version: "2"
)");
  EXPECT_EQ(described(from_program), described(from_text));
  for (const auto* spec : {&from_program, &from_text}) {
    const auto& score = spec->steps.at(0);
    EXPECT_EQ(score.version, "2");
    EXPECT_TRUE(score.outputs.at(0).metrics);
    EXPECT_EQ(score.inputs.at(0).data->artifact, "optimum");
    EXPECT_TRUE(score.inputs.at(0).data->optional);
  }
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
      << "a step without `after` comes after all others";
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

TEST_F(Builder, a_notebook_is_that_of_yaml) {
  std::ofstream(folder_.path() / "train.ipynb") << R"({"cells": [], "nbformat": 4})";
  Pipeline pipeline{"notebooks", {.root = folder_.path()}};
  const auto train = pipeline.add(
      notebook("train", "train.ipynb",
               {.outputs = {{"model", "m.pkl"}}, .parameters = {{"rate", 0.5}}, .version = "2"}));
  pipeline.add(command("show", {"cat", "${inputs.pages}"}), {{"pages", train["notebook"]}});
  const auto wanted = described(from_yaml(R"(
name: notebooks
steps:
  train: {notebook: train.ipynb, parameters: {rate: 0.5}, outputs: {model: m.pkl}, version: "2"}
  show: {command: [cat, "${inputs.pages}"], inputs: {pages: train.notebook}}
)"));
  EXPECT_EQ(described(dsl::build(pipeline)), wanted);
  EXPECT_EQ(wanted["steps"][0]["outputs"].back()[0], "notebook");
  EXPECT_EQ(described(from_yaml(spec::to_yaml(dsl::document_of(pipeline).root))), wanted)
      << "exported";
  Pipeline wrong{"wrong", {.root = folder_.path()}};
  wrong.add(notebook("train", "train.py"));
  EXPECT_THAT(error_of(wrong), HasSubstr("'train.py' is not a Jupyter notebook"));
}

TEST_F(Builder, published_artifacts_and_names_are_those_of_yaml) {
  const StringList none = std::vector<std::string>{};
  Pipeline pipeline{"shared", {.root = folder_.path()}};
  const auto train = pipeline.add(command(
      "train", {"train", "${outputs.model}"},
      {.outputs = {{"model", "m.pkl"}}, .publish = {{"model", "production"}}, .code = none}));
  pipeline.add(command("compare", {"compare", "${inputs.old}", "${inputs.new}"}, {.code = none}),
               {{"old", "artifact:production"}, {"new", train["model"]}});
  const auto wanted = described(from_yaml(R"(
name: shared
steps:
  train:
    command: [train, "${outputs.model}"]
    outputs: {model: m.pkl}
    publish: {model: production}
    code: []
  compare:
    command: [compare, "${inputs.old}", "${inputs.new}"]
    inputs: {new: train.model, old: "artifact:production"}
    code: []
)"));
  EXPECT_EQ(wanted["steps"][0]["publish"], (json{{"model", "production"}}));
  EXPECT_EQ(described(dsl::build(pipeline)), wanted);
  EXPECT_EQ(described(from_yaml(spec::to_yaml(dsl::document_of(pipeline).root))), wanted)
      << "exported";
  Pipeline wrong{"wrong", {.root = folder_.path()}};
  wrong.add(command("a", {"a", "${outputs.x}"}, {.publish = {{"y", "production"}}}));
  EXPECT_THAT(error_of(wrong), HasSubstr("'y'"));
}

TEST_F(Builder, policies_and_destinations_of_steps_are_those_of_yaml) {
  Pipeline pipeline{"policies", {.root = folder_.path()}};
  const auto train =
      pipeline.add(command("train", {"train", "${params.c}", "${outputs.model}"},
                           {.outputs = {Output("model", "model").as_temp(), {"plot", "plot"}},
                            .matrix = nlohmann::json{{"c", {1, 2}}},
                            .publish_to = "./results/${params.c}",
                            .allow_failure = true,
                            .wait = "Train ${params.c}?",
                            .max_parallel = 1,
                            .uses = {{"license", 2}},
                            .services = {{"db",
                                          {.image = "postgres:16",
                                           .command = {"-c", "fsync=off"},
                                           .environment = {{"A", "${params.c}"}, {"HOME", {}}},
                                           .ready = {.port = 5432, .timeout = 30_s},
                                           .resources = {.memory = 1_GiB}}}},
                            .environment = {{"HOME", {}}},
                            .retry = {.max_retries = 1, .on = {"exit 75"}, .never = {"signal 9"}},
                            .cache_max_age = std::chrono::hours(24),
                            .cache_until = "monday"}));
  pipeline.add(command("best", {"best", "${inputs.models}"}),
               {{"models", train.all("model").at_least(1)}});
  const auto spec = dsl::build(pipeline);
  const auto& step = spec.steps.at(1);
  EXPECT_EQ(step.publish_to, folder_.path() / "results/2");
  EXPECT_TRUE(step.allow_failure);
  EXPECT_EQ(step.wait, "Train 2?");
  EXPECT_TRUE(step.outputs.at(0).temp);
  EXPECT_EQ(step.max_parallel, 1u);
  EXPECT_EQ(step.uses, (std::map<std::string, unsigned>{{"license", 2}}));
  const auto& db = step.services.at("db");
  EXPECT_EQ(db.image, "postgres:16");
  EXPECT_EQ(db.command, (std::vector<std::string>{"-c", "fsync=off"}));
  EXPECT_EQ(db.environment, (StepEnvironment{{"A", "2"}, {"HOME", {}}}));
  EXPECT_EQ(db.ready.port, 5432u);
  EXPECT_EQ(db.ready.timeout, std::chrono::seconds(30));
  EXPECT_EQ(db.resources.memory, 1_GiB);
  EXPECT_EQ(step.retry->on.items(), std::vector<std::string>{"exit 75"});
  EXPECT_EQ(*step.cache_max_age, std::chrono::hours(24));
  EXPECT_EQ(step.cache_until, "monday");
  EXPECT_EQ(spec.steps.at(2).inputs.at(0).at_least, 1u);
  EXPECT_TRUE(spec.steps.at(2).inputs.at(0).gathered);
  pipeline.add(command("one", {"one", "${inputs.models}"}),
               {{"models", train.all("model").at_least(3)}});
  EXPECT_THAT(error_of(pipeline), HasSubstr("'at_least' is 3, and this gathers 2"));
}

TEST_F(Builder, nodes_and_their_outputs_are_those_of_yaml) {
  Pipeline pipeline{"nodes", {.root = folder_.path()}};
  pipeline.add(command("train", {"train", "${node.rank}", "${outputs.model}", "${outputs.shards}"},
                       {.outputs = {"model", Output("shards").of_all_nodes()},
                        .nodes = {.count = 2, .processes = per_gpu, .done = NodesDone::first},
                        .resources = {.gpu_count = 4}}));
  pipeline.add(command("echo", {"echo"}));
  const auto spec = dsl::build(pipeline);
  const auto& nodes = spec.steps.at(0).nodes;
  EXPECT_EQ(nodes.count, 2);
  EXPECT_EQ(nodes.processes, per_gpu);
  EXPECT_EQ(nodes.done, NodesDone::first);
  EXPECT_EQ(nodes.visible, VisibleGpus::node);
  EXPECT_FALSE(spec.steps.at(0).outputs.at(0).from_all_nodes);
  EXPECT_TRUE(spec.steps.at(0).outputs.at(1).from_all_nodes);
  EXPECT_FALSE(spec.steps.at(1).nodes);
}

TEST(Yaml, texts_that_look_like_something_else_are_quoted) {
  Pipeline pipeline{"yaml"};
  pipeline.add(command("echo", {"echo", "true", "5", "a: b", "${outputs.x}", "line\nbreak", ""}));
  const auto text = spec::to_yaml(dsl::document_of(pipeline).root);
  EXPECT_THAT(text, HasSubstr(R"([echo, "true", "5", "a: b", "${outputs.x}", "line\nbreak", ""])"));
}

}  // namespace
}  // namespace pipeline

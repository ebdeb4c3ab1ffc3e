// The pipelines of tests/python/equal_test.py in C++: DSL_PROGRAM names the one that the command is
// about. Without it, the program prints all names, or the specs that files of YAML stand for.
#include <pipeline/pipeline.hpp>
#include <pipeline/run.hpp>

#include <iostream>

#include <nlohmann/json.hpp>

#include "spec/pipeline_file.hpp"
#include "support/described.hpp"

namespace pl = pipeline;
using namespace pipeline::literals;

namespace {

struct Case {
  void (*declare)(pl::Pipeline& digits);
  pl::PipelineOptions options = {};
};
using Cases = std::map<std::string_view, Case>;

const std::string write_x = "echo > ${outputs.x}";
const std::vector<std::string> list_x{"ls", "${inputs.x}"};

/// Returns the step that a function of digits.py becomes.
pl::CommandStep function(std::string_view name, const std::vector<std::string>& words,
                         pl::StepOptions options = {}) {
  std::vector<std::string> command{"python", "__pipe__/pipe_step.py",
                                   "__pipe__/digits." + std::string(name) + ".py"};
  command.insert(command.end(), words.begin(), words.end());
  command.insert(command.end(), {"->", "result:json"});
  options.outputs = {{"result", "result.json"}};
  return pl::command(name, command, options);
}

pl::CommandHandle load(pl::Pipeline& digits) {
  return digits.add(function("load", {"count=json"}, {.parameters = {{"count", 3}}}));
}

const Cases commands{
    {"command", {[](auto& digits) {
       digits.add(pl::command("a", {"echo", "hi"}));
     }}},
    {"shell", {[](auto& digits) { digits.add(pl::shell("a", "echo hi > ${outputs.x}")); }}},
    {"inputs", {[](auto& digits) {
       auto a = digits.add(pl::shell("a", write_x));
       digits.add(pl::command("b", {"cat", "${inputs.y}"}), {{"y", a["x"]}});
     }}},
    {"file_names", {[](auto& digits) {
       digits.add(pl::shell("a", write_x, {.outputs = {{"x", "x.txt"}}}));
     }}},
    {"kinds_of_outputs", {[](auto& digits) {
       digits.add(pl::shell(
           "a", "cd ${outputs.m} ${outputs.t}",
           {.outputs = {pl::Output("m", "m.json").as_metrics(), pl::Output("t").as_temp()}}));
     }}},
    {"after", {[](auto& digits) {
       auto a = digits.add(pl::shell("a", "echo"));
       digits.add(pl::shell("b", "echo", {.after = {a}}));
     }}},
    {"parameters",
     {[](auto& digits) {
        digits.add(pl::command("a", {"echo", "${params.n}", "${params.s}"}));
      },
      {.parameters = {{"n", 3}, {"s", "text"}}}}},
    {"step_parameters",
     {[](auto& digits) {
        digits.add(pl::command("a", {"env"}, {.parameters = {{"n", nullptr}, {"own", {1, 2}}}}));
      },
      {.parameters = {{"n", 0.5}}}}},
    {"all_parameters",
     {[](auto& digits) { digits.add(pl::command("a", {"env"}, {.all_parameters = true})); },
      {.parameters = {{"n", true}}}}},
    {"data", {[](auto& digits) {
       digits.add(pl::command("a", {"cat", "${inputs.f}"}), {{"f", "./data.txt"}});
     }}},
    {"addresses", {[](auto& digits) {
       digits.add(
           pl::command("a", {"cat", "${inputs.f}", "${inputs.g}"}),
           {{"f", pl::Url{.url = "https://example.org/x.csv", .sha256 = std::string(64, 'a')}},
            {"g", pl::Published{.name = "production", .optional = true}}});
     }}},
    {"code", {[](auto& digits) {
       digits.add(pl::command("a", {"cat", "data.txt"}, {.code = {"data.txt"}}));
       digits.add(pl::command("b", {"python3", "program.py"}));
     }}},
    {"shell_option",
     {[](auto& digits) { digits.add(pl::shell("a", "echo | cat", {.shell = {"bash"}})); }}},
    {"version_and_checkpoint", {[](auto& digits) {
       digits.add(pl::shell("a", "ls ${checkpoint}", {.checkpoint = true, .version = "7"}));
     }}},
    {"notebook", {[](auto& digits) {
       auto a = digits.add(pl::notebook(
           "a", "n.ipynb", {.outputs = {{"m", "m.json"}}, .parameters = {{"rate", 0.5}}}));
       digits.add(pl::command("b", {"cat", "${inputs.y}"}), {{"y", a["notebook"]}});
     }}},
};

const Cases settings{
    {"settings", {[](auto& digits) {
       digits.add(pl::shell("a", "echo",
                            {.docker = {.environment = {{"A", "b"}}},
                             .resources = {.cpu_count = 1, .memory = 1_GiB}}));
     }}},
    {"pipeline_settings",
     {[](auto& digits) {
        digits.add(pl::shell("a", "echo", {.docker = {.requirements = {"tomli==2.0.1"}}}));
      },
      {.docker = {.parent_image = "python:3.11-slim-bookworm"}}}},
    {"settings_of_a_cluster", {[](auto& digits) {
       digits.add(pl::shell(
           "a", "echo",
           {.kubernetes = {.node_selectors = {{"disk", "ssd"}},
                           .tolerations = {"gpu=yes:NoSchedule"},
                           .labels = {{"team", "a"}},
                           .pod_startup_timeout = 5_min},
            .slurm = {.partition = "gpu", .time = 60_min, .extra_args = {"--exclusive"}}}));
     }}},
    {"environment",
     {[](auto& digits) {
        digits.add(pl::shell("a", "env", {.environment = {{"A", "1"}, {"B", std::nullopt}}}));
      },
      {.environment = {{"C", "x"}}}}},
    {"secrets",
     {[](auto& digits) { digits.add(pl::shell("a", "env", {.secrets = {{.name = "TOKEN"}}})); }}},
    {"retry", {[](auto& digits) {
       digits.add(pl::shell("a", "echo",
                            {.retry = {.max_retries = 2,
                                       .on = {"exit 3"},
                                       .delay = 1_s,
                                       .on_oom = {.memory = pl::Factor(2), .max = 4_GiB}},
                             .timeout = 10_min}));
     }}},
    {"cache", {[](auto& digits) {
       digits.add(pl::shell("a", "echo", {.cache_until = "today"}));
       digits.add(pl::shell("b", "echo", {.cache = false}));
     }}},
    {"placement", {[](auto& digits) {
       digits.add(
           pl::shell("a", write_x, {.publish = {{"x", "production"}}, .publish_to = "./results"}));
       digits.add(pl::shell(
           "b", "echo", {.matrix = {{"c", {1, 2}}}, .max_parallel = 2, .uses = {{"license", 1}}}));
     }}},
    {"services", {[](auto& digits) {
       digits.add(pl::shell(
           "a", "echo", {.services = {{"db", {.image = "postgres:16", .ready = {.port = 5432}}}}}));
     }}},
    {"nodes", {[](auto& digits) {
       digits.add(pl::shell("a", "echo",
                            {.nodes = {.count = 2, .processes = 3, .done = pl::NodesDone::first}}));
     }}},
    {"top",
     {[](auto& digits) { digits.add(pl::shell("a", "echo")); },
      {.description = "All.",
       .retry = {.max_retries = 1},
       .tags = {"x"},
       .headline = {"a.loss"},
       .execution_mode = pl::ExecutionMode::fail_fast,
       .notify = {{.url_variable = "HOOK", .on = {pl::RunStatus::failed}}}}}},
};

const Cases graphs{
    {"matrix", {[](auto& digits) {
       digits.add(pl::command("a", {"echo", "${params.c}", "${params.k}"},
                              {.matrix = {{"c", {0.1, 1}}, {"k", {"x", "y"}}}}));
     }}},
    {"gather", {[](auto& digits) {
       auto a = digits.add(pl::shell("a", write_x, {.matrix = {{"c", {1, 2}}}}));
       digits.add(pl::command("b", list_x), {{"x", a.all("x")}});
     }}},
    {"pairwise", {[](auto& digits) {
       digits.add(pl::shell("a", write_x, {.matrix = {{"c", {1, 2}}}}));
       digits.add(pl::command("b", list_x, {.matrix = "a"}), {{"x", "a[=].x"}});
     }}},
    {"at_least", {[](auto& digits) {
       auto a = digits.add(pl::shell("a", write_x, {.matrix = {{"c", {1, 2}}}}));
       digits.add(pl::command("b", list_x), {{"x", a.all("x").at_least(1)}});
     }}},
    {"items", {[](auto& digits) {
       digits.add(pl::shell("a", write_x));
       digits.add(pl::command("b", {"echo", "${params.f}"}, {.matrix = {{"f", "${a.x[*]}"}}}));
     }}},
    {"when",
     {[](auto& digits) {
        digits.add(pl::shell("a", write_x));
        digits.add(pl::shell("b", "echo", {.when = "(${a.x.n} > 1) and ${params.p}"}));
      },
      {.parameters = {{"p", true}}}}},
    {"run_on", {[](auto& digits) {
       digits.add(pl::shell("a", "echo"));
       digits.add(pl::shell("b", "echo", {.run_on = pl::RunOn::failure}));
       digits.add(pl::shell("c", "echo", {.allow_failure = true}));
     }}},
    {"rounds", {[](auto& digits) {
       auto s = digits.add(pl::shell("s", write_x));
       digits.repeat({.until = "${f.x} < 1", .max = 3}, s["x"],
                     [&](const pl::Artifact<pl::File>& x) {
                       const auto round = pl::shell("f", "cat ${inputs.x} > ${outputs.x}");
                       return digits.add(round, {{"x", x}})["x"];
                     });
     }}},
    {"gated",
     {[](auto& digits) {
        auto one = digits.add(pl::shell("one", "echo one > ${outputs.text}"));
        digits.add(pl::shell("two",
                             "while [ ! -e \"$GATE\" ]; do sleep 0.05; done\n"
                             "cat ${inputs.text} > ${outputs.copy}",
                             {.environment = {{"GATE", ""}}}),
                   {{"text", one["text"]}});
      },
      {.environment = {{"DSL_PROGRAM", "gated"}}}}},
};

const std::vector<std::string> total_words{"values:json", "factor=json"};

const Cases functions{
    {"function", {[](auto& digits) { load(digits); }}},
    {"functions", {[](auto& digits) {
       const auto total = function("total", total_words, {.parameters = {{"factor", 2.0}}});
       digits.add(total, {{"values", load(digits)["result"]}});
     }}},
    {"function_of_a_parameter",
     {[](auto& digits) {
        digits.add(function("load", {"count=json@n"}, {.parameters = {{"n", nullptr}}}));
      },
      {.parameters = {{"n", 5}}}}},
    {"mapped_functions", {[](auto& digits) {
       const auto mapped = function("total", total_words, {.matrix = {{"factor", {1.0, 2.0}}}});
       auto total = digits.add(mapped, {{"values", load(digits)["result"]}});
       digits.add(function("largest", {"values:json*"}), {{"values", total.all("result")}});
     }}},
    {"function_with_data", {[](auto& digits) {
       digits.add(function("size", {"file:path"}), {{"file", "./data.txt"}});
     }}},
};

}  // namespace

int main(int argc, char** argv) {
  auto cases = commands;
  for (const auto* more : {&settings, &graphs, &functions})
    cases.insert(more->begin(), more->end());
  const char* name = std::getenv("DSL_PROGRAM");
  if (!name) {
    for (int i = 1; i < argc; ++i)
      std::cout << pl::described(pl::spec::load(std::filesystem::absolute(argv[i]))) << "\n";
    if (argc == 1)
      for (const auto& [known, made] : cases) std::cout << known << "\n";
    return 0;
  }
  const auto& chosen = cases.at(name);
  pl::Pipeline digits{"digits", chosen.options};
  chosen.declare(digits);
  return pl::run_main(digits, argc, argv);
}

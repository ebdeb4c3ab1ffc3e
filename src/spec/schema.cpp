#include <nlohmann/json.hpp>

#include "model/headlines.hpp"
#include "orchestrators/catalog/catalog.hpp"
#include "settings/settings.hpp"
#include "spec/limits_reader.hpp"
#include "spec/nodes_reader.hpp"
#include "spec/notify_reader.hpp"
#include "spec/pipeline_file.hpp"
#include "spec/repeat.hpp"
#include "spec/services_reader.hpp"

namespace pipeline::spec {
namespace {

using nlohmann::json;

json described(json schema, const char* description) {
  schema["description"] = description;
  return schema;
}

json list_of(json items) { return {{"type", "array"}, {"items", std::move(items)}}; }
json map_of(json values) {
  return {{"type", "object"}, {"additionalProperties", std::move(values)}};
}
json any_of(std::initializer_list<json> schemas) { return {{"anyOf", json(schemas)}}; }
json object_of(json properties) {
  return {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

json text() { return {{"type", "string"}}; }
json scalar() { return {{"type", {"string", "number", "boolean"}}}; }
json parameter() { return {{"type", {"string", "number", "boolean", "array", "object"}}}; }
/// Returns the schema of a parameter of a step or of an included file, where null takes the
/// pipeline's value.
json own_parameter() {
  return {{"type", {"string", "number", "boolean", "array", "object", "null"}}};
}

json cache_schema() {
  return object_of(
      {{"max_age", described(settings::duration_schema(), "Age of the oldest result to be used.")},
       {"until", described(text(), "A part of the key, which may name parameters.")}});
}

json units(const char* description) {
  json limits = map_of({{"type", "integer"}, {"minimum", 1}, {"maximum", max_units}});
  return described(std::move(limits), description);
}

/// Returns the keys that pipelines and steps have in common.
json common_properties() {
  const json variable{{"type", "string"}, {"pattern", "^[A-Za-z_][A-Za-z0-9_]*$"}};
  json secret = object_of(
      {{"name", described(variable, "Name of the variable.")},
       {"file",
        described(text(),
                  "File that holds the value. Default: the caller's variable of that name.")}});
  secret["required"] = {"name"};
  return {
      {"parameters", described(map_of(parameter()),
                               "Values for `${params.X}`, also in the variables PIPE_PARAM_X and "
                               "PIPE_PARAM_x of the steps that take them. A list or map is JSON "
                               "there; `${params.X.MEMBER}` and `${params.X.0}` look into it.")},
      {"environment",
       described(
           any_of({map_of({{"type", {"string", "number", "boolean", "null"}}}), list_of(variable)}),
           "Variables of the step: a map of names to values (none: the caller's value), or a list "
           "of names whose values come from the caller.")},
      {"secrets", described(list_of(any_of({variable, secret})),
                            "Variables from the caller's environment or a file that are masked in "
                            "logs and not stored by pipe; users with access to the engine or the "
                            "cluster can read them while the container or the Job exists.")},
      {"code",
       described(any_of({text(), list_of(text())}),
                 "Files, folders and globs (`**` crosses folders) of the pipeline's folder that "
                 "the step sees; `.` is all that .dockerignore "
                 "and .gitignore leave. "
                 "Default: the files that the command and PYTHONPATH name, and what those import "
                 "or source.")},
      {"settings", described(settings::settings_schema(),
                             "Image, container and resources. The pipeline's are each step's "
                             "default; a step's own values win key by key, its lists "
                             "replace, its maps are merged in.")},
      {"retry", described(settings::retry_schema(), "Retries of failed attempts.")},
      {"timeout", described(settings::duration_schema(),
                            "Longest time of one attempt; a bare number is seconds.")},
      {"stalled_after",
       described(settings::duration_schema(),
                 "Time without output after which a running step is reported as stalled, with what "
                 "its processes wait in; `retry.stalled` ends it. A bare number is seconds.")},
      {"shell", described(any_of({{{"enum", {"sh", "bash"}}}, list_of(text())}),
                          "The shell that reads a command that is a text. By default `bash -e -o "
                          "pipefail` where image or machine has bash, else `sh -e`: the first line "
                          "that fails fails the step, and so does any part of a pipe if that shell "
                          "has pipefail. `bash` and `sh` name one of them. A list is the words "
                          "before the command: `[sh, -c]` passes over lines that fail.")},
      {"cache", described(any_of({{{"type", "boolean"}}, cache_schema()}),
                          "Whether an earlier success with the same key is used instead of a run. "
                          "Default: true. `{max_age: 24h}`: unless it is older; results of other "
                          "machines, whose age is not known, are not used. `{until: "
                          "\"${params.day}\"}`: until that text changes.")},
  };
}

json artifact_name() {
  return {{"type", "string"}, {"pattern", "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"}};
}

json input_schema() {
  const json output{{"type", "string"}, {"pattern", "^[^.\\[\\]]+(\\[.+\\])?\\.[^.\\[\\]]+$"}};
  // A path or an address has a `/`; a selector, `work[file=a/b].made`, may have one in brackets.
  const json data{{"type", "string"}, {"pattern", "^(\\.\\.?$|[^\\[]*/)"}};
  const json url{{"type", "string"}, {"pattern", "^(https?://.|s3://[^/]+/)"}};
  const json digest{{"type", "string"}, {"pattern", "^[0-9a-f]{64}$"}};
  json by_path = object_of({{"path", described(text(), "A file or folder of this machine.")}});
  by_path["required"] = {"path"};
  json by_url = object_of(
      {{"url", described(url, "Address of the data.")},
       {"sha256",
        described(digest,
                  "SHA-256 of the content. Default: the digest that the lock file has recorded.")},
       {"version", described(text(), "Version of an object in a versioned bucket.")}});
  by_url["required"] = {"url"};
  const json published{{"type", "string"},
                       {"pattern", "^artifact:[A-Za-z0-9][A-Za-z0-9._-]*(@[0-9]+)?$"}};
  json by_name = object_of(
      {{"artifact",
        described({{"type", "string"}, {"pattern", "^[A-Za-z0-9][A-Za-z0-9._-]*(@[0-9]+)?$"}},
                  "Name of a published artifact: its current version, or NAME@3.")},
       {"optional", described({{"type", "boolean"}},
                              "Whether the input is an empty file while nothing is published.")}});
  by_name["required"] = {"artifact"};
  json by_round = object_of(
      {{"first", described(output, "The output that the first round takes.")},
       {"then",
        described(output, "The output of the round before, which each further round takes.")}});
  by_round["required"] = {"first", "then"};
  json gathered = object_of(
      {{"from", described(output, "The outputs to gather, `train[*].model`.")},
       {"missing", described({{"enum", {"allow", "fail"}}},
                             "`allow`: gathers the outputs that exist, even if there are none.")},
       {"at_least", described({{"type", "integer"}, {"minimum", 0}},
                              "Gathers the outputs that exist; the step fails if there are fewer "
                              "than this number.")}});
  gathered["required"] = {"from"};
  const json filled{{"type", "string"}, {"pattern", "\\$\\{params\\."}};
  return any_of({output, data, filled, published, std::move(gathered), std::move(by_path),
                 std::move(by_url), std::move(by_name), std::move(by_round)});
}

/// Returns the schema of the key `outputs`.
json outputs_schema() {
  const json name{{"type", "string"}, {"pattern", "^[A-Za-z_][A-Za-z0-9_-]*$"}};
  const json file{{"type", {"string", "null"}}, {"pattern", "^[A-Za-z0-9][A-Za-z0-9._-]*$"}};
  const json output{
      {"type", "object"},
      {"properties",
       {{"file", described(file, "The output's file name. Default: its name.")},
        {"metrics",
         described(
             {{"type", "boolean"}},
             "Whether the output is a JSON or CSV file whose numbers are metrics of the run.")},
        {"temp",
         described({{"type", "boolean"}},
                   "Whether the output is removed when no step of the run needs it any more.")},
        {"from", described({{"enum", {"first", "all"}}},
                           "In a step with `nodes`: the nodes whose outputs are kept. `all`: a "
                           "folder with one entry for each node, `0`, `1`, ... Default: first.")}}},
      {"additionalProperties", false}};
  json of_nodes = output;
  of_nodes["properties"]["name"] = described(name, "The output's name.");
  of_nodes["required"] = {"name", "from"};
  return described(
      any_of({list_of(any_of({name, std::move(of_nodes)})), map_of(any_of({file, output}))}),
      "Files or folders that the step writes: a list of names, or a map of names to file names or "
      "to `{file: NAME, metrics: true}`: the numbers in such a JSON or CSV file are metrics of the "
      "run. `temp: true`: it is removed when no step of the run needs it any more.");
}

/// Returns the schema of the key `matrix`.
json matrix_schema() {
  const json values{{"type", "array"}, {"minItems", 1}, {"items", scalar()}};
  json matrix{
      {"type", "object"},
      {"properties",
       {{"include", described(any_of({list_of(map_of(scalar())), text()}),
                              "Further combinations, each with a value for every axis; without "
                              "axes, all there are. Or a table, `samples.csv`, whose first line "
                              "names the axes.")},
        {"exclude",
         described(
             list_of(map_of(scalar())),
             "Combinations to leave out: those that have all the values of one of these maps.")}}},
      {"additionalProperties",
       any_of(
           {values, described({{"type", "string"}, {"pattern", "^\\$\\{[^\\[\\]{}]+\\[\\*\\]\\}$"}},
                              "`${STEP.OUTPUT[*]}`: the items of a JSON list, or the entries of a "
                              "folder, that a step makes. `${params.X[*]}`: those of a list.")})}};
  return described(any_of({std::move(matrix), text()}),
                   "Makes a step of every combination of these values, which are parameters of it: "
                   "`{c: [0.1, 1], kernel: [rbf, linear]}`. `${split.files[*]}` in place of a list "
                   "takes the items that a step makes. Or the "
                   "name of a step that has such a matrix.");
}

/// Returns the schema of the key `repeat`.
json repeat_schema() {
  json repeat = object_of(
      {{"until", described(text(),
                           "An expression as in `when`, over outputs of these steps. Without "
                           "it, there are `max` rounds.")},
       {"max", described({{"type", "integer"}, {"minimum", 1}, {"maximum", max_rounds}},
                         "Maximum number of rounds.")}});
  repeat["required"] = {"max"};
  return described(
      any_of({std::move(repeat), text()}),
      "Runs the step in rounds until the condition holds. An input `{first: start.state, "
      "then: fit.state}` takes what the round before has made. Or the name of a step "
      "with such a `repeat`, in whose rounds this one runs.");
}

/// Adds the keys that say what the step reads and writes.
void add_data(json& properties) {
  properties["inputs"] = described(
      map_of(input_schema()),
      "Outputs of other steps, by the name that they have here: `{data: load.data}`. Of "
      "a step with a matrix: "
      "`train[*].model` gathers all in a folder, `train[c=1].model` is one of them, "
      "`train[=].model` the one with the "
      "values that this step has; `{from: train[*].model, missing: allow}` gathers what succeeded. "
      "Data from outside of the pipeline: a file or folder, "
      "`./corpus`, or an address, `https://...`, `s3://BUCKET/KEY`, `s3://BUCKET/FOLDER/`; "
      "`./data/${params.sample}.csv` is another one for each instance of a matrix.");
  properties["outputs"] = outputs_schema();
  properties["publish"] = described(
      map_of(artifact_name()),
      "Names under which outputs are published once the step succeeds, by output: `{model: "
      "production}`. Other pipelines take them as `artifact:production`.");
  properties["publish_to"] =
      described(text(),
                "Folder that receives copies of the outputs when the step has succeeded or is "
                "reused: `./results/${params.sample}`. An earlier file or folder of an output's "
                "name is replaced in one move.");
  properties["checkpoint"] = described(
      {{"type", "boolean"}},
      "Whether the step has a folder, `${checkpoint}` and $PIPE_CHECKPOINT, that survives "
      "its attempts, retries and runs with the same key until it succeeds. Default: "
      "whether its command names it.");
}

/// Adds the keys that say whether, when and how often the step runs.
void add_conditions(json& properties) {
  properties["matrix"] = matrix_schema();
  properties["max_parallel"] =
      described({{"type", "integer"}, {"minimum", 1}, {"maximum", max_units}},
                "Maximum number of the step's instances that run at the same time; for a step with "
                "a matrix.");
  properties["repeat"] = repeat_schema();
  properties["after"] = described(
      list_of(text()), "Steps that must have succeeded before, besides those of the inputs.");
  properties["when"] = described(
      {{"type", {"string", "boolean"}}},
      "Whether the step runs: an expression over `${params.X}` and JSON outputs, `${STEP.OUTPUT}` "
      "and `${STEP.OUTPUT.MEMBER}`, with ==, !=, <, <=, >, >=, and, or, not. If it is false, the "
      "step is skipped, and so are those that depend on it.");
  properties["run_on"] = described(
      {{"enum", {"success", "failure", "always"}}},
      "How the steps before this one have to end for it to run: all have succeeded (the default), "
      "at least one has failed, or in any way. With `failure` and `always`, a step without `after` "
      "comes after all others, and is not reused unless it says `cache: true`.");
  properties["wait"] = described(text(),
                                 "A question to a person, `Deploy ${params.model}?`: the step "
                                 "begins once `pipe answer RUN STEP "
                                 "yes` was said, and fails after `no`. Such a step is not reused, "
                                 "unless it has `cache: true`.");
  properties["allow_failure"] = described(
      {{"type", "boolean"}},
      "Whether the run continues, and can succeed, if the step fails. Steps `after` it run; "
      "those that take its outputs are skipped. Default: false.");
}

/// Adds the keys that say where and beside what the step runs.
void add_surroundings(json& properties) {
  properties["orchestrator"] =
      described({{"enum", orchestrators::orchestrator_names()}},
                "Where this step runs, if elsewhere than the run (`--orchestrator`).");
  properties["nodes"] = nodes_schema();
  properties["services"] = services_schema();
  properties["uses"] = units(
      "Units of named limits that the step holds while it runs, `{license: 1}`. A profile "
      "sets how many this machine has for all runs: `limits: {license: 2}`.");
  properties["version"] =
      described({{"type", {"string", "number"}}},
                "A text in the step's key: change it when data that the step reads in other ways "
                "than as inputs (volumes, claims, a database) has changed.");
}

json step_schema() {
  json properties = common_properties();
  json command = any_of({list_of(scalar()), text()});
  command["anyOf"][0]["minItems"] = 1;
  properties["command"] =
      described(std::move(command),
                "The words of the program to execute, or a text for `shell`. Filled in: "
                "${inputs.X}, ${outputs.X}, ${params.X}, ${env.X}, ${run.id}, ${step.name}, and "
                "with `nodes` ${node.rank}, ${node.count}; `$${` is a literal `${`.");
  properties["notebook"] = described(
      text(),
      "A Jupyter notebook in place of a command, `train.ipynb`: its cells are executed in the "
      "step's "
      "environment, which has nbclient and ipykernel. Parameters, and the paths of inputs and "
      "outputs, are variables of it by their names; the output `notebook` is the executed one.");
  properties["parameters"] =
      described(any_of({map_of(own_parameter()), list_of(text()), {{"const", "all"}}}),
                "Values for `${params.X}`, also in the variables PIPE_PARAM_X and PIPE_PARAM_x; "
                "they win over the pipeline's. Of the pipeline's, a step "
                "takes those that its command names. Others are taken by name for a program that "
                "reads the variables: `{epochs: 5, seed: }`, "
                "`[lr, seed]`, or `all`.");
  properties["description"] = described(text(), "The purpose of the step.");
  add_data(properties);
  add_conditions(properties);
  add_surroundings(properties);
  json schema = object_of(std::move(properties));
  const auto with = [](const char* key) { return json{{"required", json::array({key})}}; };
  schema["allOf"] = json::array({{{"anyOf", json::array({with("command"), with("notebook")})}}});
  return described(std::move(schema), "One step: a command that turns inputs into outputs.");
}

}  // namespace

json schema() {
  json properties = common_properties();
  properties["name"] =
      described({{"type", "string"}, {"pattern", "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"}},
                "Name of the pipeline.");
  properties["description"] = described(text(), "The purpose of the pipeline.");
  properties["tags"] = described(list_of(text()), "Words to find its runs by.");
  const auto headline =
      "The metrics that say how good a run is, as `STEP.METRIC`, at most " +
      std::to_string(model::max_headlines) +
      ": reports, pages and `pipe metrics` begin with them. Default: those of the last steps with "
      "metrics.";
  properties["headline"] = described(list_of(text()), headline.c_str());
  properties["notify"] = described(notify_schema(),
                                   "Webhooks that are called when a run has ended. A webhook that "
                                   "fails is reported, and does not fail the run.");
  properties["execution_mode"] =
      described({{"enum", {"fail_fast", "stop_on_failure", "continue_on_failure"}}},
                "The effect of a failed step on the other steps. Default: continue_on_failure.");
  json include = object_of(
      {{"file", described(text(), "Path of the included file, relative to this file.")},
       {"prefix", described({{"type", "string"}, {"pattern", "^[A-Za-z0-9][A-Za-z0-9_-]*$"}},
                            "Stands before the names of the included steps: with `prep`, the step "
                            "`load` is `prep-load`.")},
       {"parameters",
        described(any_of({map_of(own_parameter()), list_of(text()), {{"const", "all"}}}),
                  "Values for the parameters that the included file declares; without a value, or "
                  "in a list, this file's own parameter of the name.")}});
  include["required"] = {"file"};
  const json one = any_of({text(), std::move(include)});
  properties["include"] =
      described(any_of({text(), one["anyOf"][1], list_of(one)}),
                "Files whose steps become steps of this pipeline: `[{file: common.yaml, prefix: "
                "prep, parameters: {size: 3}}]`. Paths in such a file are relative to it.");
  json steps = map_of({{"$ref", "#/$defs/step"}});
  steps["minProperties"] = 1;
  steps["propertyNames"] = {{"pattern", "^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$"}};
  properties["steps"] = described(std::move(steps),
                                  "The steps, by name. Their order is given by inputs and `after`, "
                                  "not by their place in the file.");
  json schema = object_of(std::move(properties));
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "pipe pipeline";
  schema["description"] = "A pipeline of steps that run in containers or processes.";
  schema["required"] = {"name", "steps"};
  schema["$defs"] = {{"step", step_schema()}};
  return schema;
}

}  // namespace pipeline::spec

/// @file
/// Options of steps and pipelines. Each field has its name and meaning in YAML, and may be omitted:
/// `{.resources = {.memory = 8_GiB}, .timeout = 10_min}`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/artifact.hpp>
#include <pipeline/duration.hpp>
#include <pipeline/execution.hpp>
#include <pipeline/json.hpp>
#include <pipeline/nodes.hpp>
#include <pipeline/service.hpp>
#include <pipeline/settings.hpp>

namespace pipeline {

/// An output of a command: its name, and the name of its file if that differs: `.outputs =
/// {"metrics", {"picture", "plot.png"}}`.
struct Output {
  std::string name;
  std::string file_name;
  bool metrics = false;  ///< Whether its numbers are recorded as metrics; for JSON and CSV.
  bool temp = false;     ///< Whether it is removed when no step of the run needs it any more.
  /// Whether it is a folder with what each node of the step has written, by the node's number.
  bool from_all_nodes = false;
  Output(const char* output) : Output(std::string(output)) {}
  Output(std::string output) : Output(output, output) {}
  Output(std::string output, std::string file)
      : name(std::move(output)), file_name(std::move(file)) {}
  /// Returns a copy with `metrics`: `.outputs = {pl::Output("scores",
  /// "scores.json").as_metrics()}`.
  Output as_metrics() const {
    Output same = *this;
    same.metrics = true;
    return same;
  }
  /// Returns a copy with `temp`.
  Output as_temp() const {
    Output same = *this;
    same.temp = true;
    return same;
  }
  /// Returns a copy with `from_all_nodes`.
  Output of_all_nodes() const {
    Output same = *this;
    same.from_all_nodes = true;
    return same;
  }
};

/// Decides whether a step runs.
struct When {
  std::string expression;  ///< Empty: the step runs.
  When() = default;
  When(const char* yaml) : expression(yaml) {}
  When(std::string yaml) : expression(std::move(yaml)) {}
  /// The step runs if the artifact is true.
  When(const Artifact<bool>& condition) : When(condition.step, condition.output) {}

 private:
  When(std::string_view step, std::string_view output);
};

/// Options of Pipeline::repeat().
struct RepeatOptions {
  /// An expression as in YAML over the outputs of a round: `"${fit.result.loss} < 0.1"`. Empty: the
  /// Artifact<bool> that the body returns decides.
  When until = {};
  unsigned max = 1;  ///< Maximum number of rounds.
};

/// Options of one step.
struct StepOptions {
  /// Letters, digits, `_` and `-`. Default: the function's name, for `pl::step<train>()`.
  std::string name = {};
  std::string description = {};
  /// Names of the function's arguments, in order, without StepContext. Default: arg1, arg2, ...
  std::vector<std::string> arguments = {};
  /// Names of the results. Default: `result`, or result1, result2, ...; for a command, its
  /// `${outputs.NAME}`.
  std::vector<Output> outputs = {};
  /// Parameters of a command. A null value takes the pipeline's parameter of that name, which is
  /// then passed to the command as a variable.
  std::map<std::string, Json> parameters = {};
  /// Whether a command receives all of the pipeline's parameters as variables. Otherwise it
  /// receives those that it names.
  bool all_parameters = false;
  /// For a shell command: `{"bash"}`, or the words before the line. Default: `bash -e -o pipefail`
  /// where there is bash, else `sh -e`.
  std::vector<std::string> shell = {};
  /// Matrix of a command, as in YAML: `{{"c", {0.1, 1.0}}}`, or the name of the step whose matrix
  /// it shares. The axes are in alphabetical order, whatever the order here.
  Json matrix = {};
  /// Steps that must succeed first, besides those whose artifacts the step takes.
  std::vector<std::string> after = {};
  /// Whether the step runs: an Artifact<bool>, or an expression as in YAML,
  /// `"${evaluate.metrics.accuracy} > 0.9"`.
  When when = {};
  /// With `failure` or `always`, the step runs although steps before it have failed: a
  /// notification, a clean-up. Without `after` it comes after all other steps.
  std::optional<RunOn> run_on = {};
  /// Whether the step has a folder, StepContext::checkpoint(), that survives attempts, retries and
  /// runs until the step succeeds.
  bool checkpoint = false;
  /// Names under which results are published once the step succeeds, keyed by result.
  StringMap publish = {};
  /// Folder that receives copies of the results on success, as in YAML:
  /// `"./results/${params.sample}"`.
  std::string publish_to = {};
  /// Whether the run continues, and can succeed, if the step fails.
  bool allow_failure = false;
  /// A question to a person, who lets the step begin or not.
  std::string wait = {};
  /// Maximum number of instances that run at the same time; 0: no limit.
  unsigned max_parallel = 0;
  /// Units of a profile's `limits` that an attempt holds: `{{"license", 1}}`.
  std::map<std::string, unsigned> uses = {};
  /// Containers that run beside each attempt, by the name under which the step reaches them:
  /// `{{"db", {.image = "postgres:16", .ready = {.port = 5432}}}}`.
  std::map<std::string, ServiceSpec> services = {};
  /// Makes each attempt several processes that start and end together: `{.count = 2, .processes =
  /// pl::per_gpu}`.
  NodesSpec nodes = {.count = 0};
  /// Files, folders and globs that the step sees. Default: those that a command names; none for a
  /// function.
  StringList code = {};
  StepEnvironment environment = {};
  std::vector<SecretSpec> secrets = {};
  /// Same as `settings.docker`.
  DockerSettings docker = {};
  /// Same as `settings.resources`.
  ResourceSettings resources = {};
  /// Same as `settings.kubernetes`.
  KubernetesSettings kubernetes = {};
  RetrySettings retry = {};
  /// Limit for one attempt.
  std::optional<Duration> timeout = {};
  /// Time without output after which a running attempt is reported as stalled.
  std::optional<Duration> stalled_after = {};
  /// Whether an earlier success may be reused. Default: true.
  std::optional<bool> cache = {};
  /// Age from which an earlier success is not reused.
  std::optional<Duration> cache_max_age = {};
  /// An earlier success is reused until this text changes; it may name parameters.
  std::string cache_until = {};
  /// `local`, `docker`, `kubernetes` or `slurm`. Default: the run's.
  std::string orchestrator = {};
  /// A text in the step's key; change it when data that the step reads in other ways than as inputs
  /// has changed. In the key of a function, the version replaces the program's content, so that
  /// results are reused after a rebuild.
  std::string version = {};
};

/// Options of a pipeline. Options that steps have, too, apply to all its steps; a step's own value
/// takes precedence.
struct PipelineOptions {
  std::string description = {};
  /// Parameters of the commands. Functions get theirs by param().
  std::map<std::string, Json> parameters = {};
  DockerSettings docker = {};
  ResourceSettings resources = {};
  KubernetesSettings kubernetes = {};
  RetrySettings retry = {};
  /// Limit for one attempt of a step.
  std::optional<Duration> timeout = {};
  /// Time without output after which a running attempt of a step is reported as stalled.
  std::optional<Duration> stalled_after = {};
  StringList code = {};
  StepEnvironment environment = {};
  std::vector<SecretSpec> secrets = {};
  std::optional<bool> cache = {};
  /// See StepOptions.
  std::optional<Duration> cache_max_age = {};
  std::string cache_until = {};
  std::vector<std::string> shell = {};
  std::vector<std::string> tags = {};
  /// The metrics that say how good a run is: `.headline = {"evaluate.accuracy"}`.
  std::vector<std::string> headline = {};
  ExecutionMode execution_mode = ExecutionMode::continue_on_failure;
  /// Webhooks that are called when a run has ended.
  std::vector<NotifySpec> notify = {};
  /// Folder that `code` and relative paths refer to, and that contains `.pipe`. Default: the
  /// working folder.
  std::string root = {};
};

}  // namespace pipeline

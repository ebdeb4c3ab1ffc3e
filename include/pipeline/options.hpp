/// @file
/// Options of steps and pipelines. Each field has the name and meaning that it has in YAML, and may
/// be left out: `{.resources = {.memory = 8_GiB}, .timeout = 10_min}`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/duration.hpp>
#include <pipeline/execution.hpp>
#include <pipeline/json.hpp>
#include <pipeline/settings.hpp>

namespace pipeline {

/// An output of a command: its name, and the name of its file where that differs: `.outputs =
/// {"metrics", {"picture", "plot.png"}}`.
struct Output {
  std::string name;
  std::string file_name;
  Output(const char* output) : Output(std::string(output)) {}
  Output(std::string output) : Output(output, output) {}
  Output(std::string output, std::string file)
      : name(std::move(output)), file_name(std::move(file)) {}
};

/// Options of one step.
struct StepOptions {
  /// Letters, digits, `_` and `-`. Default: the function's name, for `pl::step<train>()`.
  std::string name = {};
  std::string description = {};
  /// Names of the function's arguments, in order, without StepContext. Default: arg1, arg2, ...
  std::vector<std::string> arguments = {};
  /// Names of the results. Default: `result`, or result1, result2, ...; of a command: those in it.
  std::vector<Output> outputs = {};
  /// Of a command. A value of null stands for the pipeline's, which the command then has in its
  /// variables.
  std::map<std::string, Json> parameters = {};
  /// Whether a command has all of the pipeline's parameters in its variables. Otherwise it has
  /// those that it names.
  bool all_parameters = false;
  /// Of a command for a shell: `{"bash"}`, or the words before the line. Default: `sh -e`.
  std::vector<std::string> shell = {};
  /// Of a command, as in YAML: `{{"c", {0.1, 1.0}}}`, or the name of the step whose matrix it
  /// shares.
  Json matrix = {};
  /// Steps that must have succeeded first, besides those whose artifacts it takes.
  std::vector<std::string> after = {};
  /// Files, folders and globs that the step sees. Default: those that a command names; none for a
  /// function.
  StringList code = {};
  StepEnvironment environment = {};
  std::vector<SecretSpec> secrets = {};
  /// `settings.docker`
  DockerSettings docker = {};
  /// `settings.resources`
  ResourceSettings resources = {};
  /// `settings.kubernetes`
  KubernetesSettings kubernetes = {};
  RetrySettings retry = {};
  /// Of one attempt.
  std::optional<Duration> timeout = {};
  /// Whether an earlier success may be reused. Default: true.
  std::optional<bool> cache = {};
  /// `local`, `docker` or `kubernetes`. Default: the run's.
  std::string orchestrator = {};
  /// Of a function. If given, its key holds this instead of the program's content: a rebuild reuses
  /// it.
  std::string version = {};
};

/// Options of a pipeline. Those that steps have, too, apply to all its steps; a step's own take
/// precedence.
struct PipelineOptions {
  std::string description = {};
  /// Of the commands. Functions get theirs by param().
  std::map<std::string, Json> parameters = {};
  DockerSettings docker = {};
  ResourceSettings resources = {};
  KubernetesSettings kubernetes = {};
  RetrySettings retry = {};
  /// Of one attempt of a step.
  std::optional<Duration> timeout = {};
  StringList code = {};
  StepEnvironment environment = {};
  std::vector<SecretSpec> secrets = {};
  std::optional<bool> cache = {};
  std::vector<std::string> shell = {};
  std::vector<std::string> tags = {};
  ExecutionMode execution_mode = ExecutionMode::continue_on_failure;
  /// Folder that `code` and relative paths refer to, and that holds `.pipe`. Default: the working
  /// folder.
  std::string root = {};
};

}  // namespace pipeline

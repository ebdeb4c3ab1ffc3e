/// @file
/// A pipeline as immutable values: what pipeline.yaml and the C++ DSL both become, and the one
/// thing that the engine reads.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include <pipeline/execution.hpp>
#include <pipeline/settings.hpp>

namespace pipeline {

/// A text with holes, as `--data ${inputs.data}`; parsed once, filled for each attempt.
struct Template {
  enum class Placeholder { input, output, parameter, run_id, step_name, environment };
  struct Reference {
    Placeholder placeholder;
    std::string name;  ///< Empty for run_id and step_name.
    bool operator==(const Reference&) const = default;
  };
  std::vector<std::variant<std::string, Reference>> parts;
  bool operator==(const Template&) const = default;
};

/// What a step executes: an argument vector as it stands, or one line for `sh -c`, where every
/// filled hole is quoted for the shell.
struct Command {
  std::vector<Template> arguments;  ///< With `shell`, exactly one.
  bool shell = false;
  bool operator==(const Command&) const = default;
};

/// An output of a step.
struct SourceSpec {
  std::string step;    ///< The step that makes it ...
  std::string output;  ///< ... and under which name.
  bool operator==(const SourceSpec&) const = default;
};

/// An input is another step's output; or the outputs of many, gathered.
struct InputSpec {
  std::string name;
  std::vector<SourceSpec> sources;  ///< Exactly one, unless gathered.
  /// The step finds a folder with one entry for each source, in order: `0-train.c-1.model`,
  /// `1-train.c-10.model`, ..., and `index.json`, a list of {step, parameters, file}: the maker,
  /// the values that tell it from its siblings, and its entry in the folder.
  bool gathered = false;
};

/// An output is a file or folder that the step writes at the path it is given.
struct OutputSpec {
  std::string name;
  std::string file_name;  ///< Last component of that path; the output's name unless said otherwise.
};

/// A C++ program whose functions are steps: what has to be there to start it again, for one of
/// them.
struct Program {
  std::filesystem::path executable;              ///< Absolute.
  std::vector<std::filesystem::path> libraries;  ///< Absolute paths of the shared libraries that it
                                                 ///< was started with; none if it is static.
  std::filesystem::path loader;  ///< Absolute path of the dynamic loader; empty if it is static.
};

/// Marks a step as a function of a program. Its command holds the program's arguments alone,
/// `--pipe-step NAME`: each place puts before them what starts the program there (Layout::program).
struct ProgramStep {
  std::shared_ptr<const Program>
      program;           ///< Shared: thousands of steps have the same one. Never null.
  std::string function;  ///< For messages, as `Model train(const Dataset&, int)`.
  std::string version;   ///< The user's own: if given, it takes the place of the program's content
                         ///< in the key.
};

/// Which of the steps that were made of one this is, as by `matrix`.
struct InstanceSpec {
  std::string of;  ///< The name that they share.
  std::vector<std::pair<std::string, nlohmann::json>>
      values;  ///< What tells it from its siblings, axis by axis; also among its parameters.
  bool operator==(const InstanceSpec&) const = default;
};

struct StepSpec {
  std::string name;  ///< A path component: letters, digits, `_`, `-`, `.`; begins with a letter or
                     ///< digit. With a `.` in it: an instance.
  std::optional<InstanceSpec> instance;
  std::string description;
  Command command;
  std::optional<ProgramStep> program;  ///< If the step is a function of a C++ program.
  std::map<std::string, nlohmann::json>
      parameters;                 ///< Scalars, the pipeline's merged in; a step's own win.
  std::vector<InputSpec> inputs;  ///< In the file's order.
  std::vector<OutputSpec> outputs;
  std::vector<std::string>
      after;        ///< Steps that must have succeeded first, besides those of the inputs.
  StringList code;  ///< Files, folders and globs below PipelineSpec::root; not given: found by
                    ///< reading the command.
  StringMap files;  ///< Further files of the step's code, whose text stands in a program: name to
                    ///< content.
  StepEnvironment environment;
  std::vector<SecretSpec> secrets;
  Settings settings;         ///< The pipeline's merged in.
  std::string orchestrator;  ///< Where it runs: `local`, `docker` or `kubernetes`; empty: where the
                             ///< run does.
  RetrySettings retry;
  std::optional<Duration> timeout;  ///< Of one attempt.
  bool cache = true;
  unsigned line = 0;  ///< Where in the source file the step begins, from 1; 0: unknown.
};

struct PipelineSpec {
  std::string name;
  std::string description;
  std::map<std::string, nlohmann::json>
      parameters;               ///< As given in the file, with the caller's `--param` applied.
  std::vector<StepSpec> steps;  ///< In the file's order; acyclic, references valid.
  ExecutionMode execution_mode = ExecutionMode::continue_on_failure;
  std::vector<std::string> tags;
  std::vector<std::filesystem::path> sources;  ///< Every file that the spec was made from
                                               ///< (requirements files, ...), `file` included.
  std::filesystem::path file;  ///< Absolute path of the source file; empty for a program.
  std::filesystem::path root;  ///< Absolute folder that code and relative paths are taken from.
};

}  // namespace pipeline

/// @file
/// A pipeline as immutable values. Both pipeline.yaml and the C++ class Pipeline become a
/// PipelineSpec, and the engine reads nothing else.
#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <pipeline/copy_on_write.hpp>
#include <pipeline/duration.hpp>
#include <pipeline/execution.hpp>
#include <pipeline/json.hpp>
#include <pipeline/nodes.hpp>
#include <pipeline/rare.hpp>
#include <pipeline/service.hpp>
#include <pipeline/settings.hpp>
#include <pipeline/shared_list.hpp>
#include <pipeline/source_list.hpp>

namespace pipeline {

using RarePath = RareValue<std::filesystem::path>;

/// A text with placeholders, such as `--data ${inputs.data}`. Parsed once, filled in for each
/// attempt.
struct Template {
  enum class Placeholder {
    input,
    output,
    parameter,
    run_id,
    step_name,
    environment,
    checkpoint,
    node_rank,
    node_count
  };
  struct Reference {
    Placeholder placeholder;
    std::string name;  ///< Empty for run_id, step_name, checkpoint, node_rank and node_count.
    bool operator==(const Reference&) const = default;
  };
  using Part = std::variant<std::string, Reference>;

  /// A list of parts that is kept in one text, because each step of a large pipeline has one. Parts
  /// are read as copies.
  class Parts {
   public:
    class Iterator {
     public:
      using value_type = Part;
      using reference = Part;
      using pointer = void;
      using difference_type = std::ptrdiff_t;
      using iterator_category = std::input_iterator_tag;
      Iterator() = default;
      explicit Iterator(const char* at) : at_(at) {}
      Part operator*() const;
      Iterator& operator++();
      Iterator operator++(int) {
        auto before = *this;
        ++*this;
        return before;
      }
      bool operator==(const Iterator&) const = default;

     private:
      const char* at_ = nullptr;
    };

    Parts() = default;
    Parts(std::initializer_list<Part> parts);
    Iterator begin() const { return Iterator(encoded_.data()); }
    Iterator end() const { return Iterator(encoded_.data() + encoded_.size()); }
    std::size_t size() const;
    bool empty() const { return encoded_.empty(); }
    /// Throws std::out_of_range.
    Part at(std::size_t i) const;
    Part operator[](std::size_t i) const { return at(i); }
    /// Returns the text if it is the only part; else nothing.
    std::optional<std::string_view> only_text() const;
    void emplace_back(std::string_view text);
    void emplace_back(const Reference& reference);
    void shrink_to_fit() { encoded_.shrink_to_fit(); }
    std::size_t bytes() const { return encoded_.capacity(); }
    bool operator==(const Parts&) const = default;

   private:
    void add(unsigned kind, std::string_view text);
    std::string encoded_;
  };
  Parts parts = {};
  bool operator==(const Template&) const = default;
};

/// The command of a step: an argument vector, or one line for a shell, in which the value of every
/// placeholder is quoted for the shell.
struct Command {
  /// Exactly one if `shell`. The instances of a matrix share them.
  SharedList<Template> arguments = {};
  bool shell = false;
  /// The words before a shell's line, such as `bash`, `-c`. If empty, `bash -e -o pipefail -c`
  /// where there is bash, else `sh -e -c`.
  RareList<std::string> interpreter = {};
  bool operator==(const Command&) const = default;
};

/// Data from outside of the pipeline, as the source of an input. Exactly one of `path`, `url` and
/// `artifact` is set.
struct DataSpec {
  std::filesystem::path path = {};  ///< A file or folder on this machine; absolute.
  /// `https://...`, `http://...`, `s3://BUCKET/KEY`, or `s3://BUCKET/FOLDER/` for all below it.
  std::string url = {};
  std::string version = {};   ///< Version in a versioned bucket; empty: the current one.
  std::string sha256 = {};    ///< Digest of the URL's content, in hex; empty: the lock file's.
  std::string artifact = {};  ///< Name under which an artifact was published, `NAME` or `NAME@3`.
  bool optional = false;  ///< Whether the input is an empty file while no artifact has the name.
  bool operator==(const DataSpec&) const = default;
};

/// An input of a step: the output of another step, the gathered outputs of several, or data from
/// outside of the pipeline.
struct InputSpec {
  std::string name = {};
  /// Exactly one, unless gathered. None for data from outside.
  SourceList sources = {};
  /// True if the input is a folder with one entry for each source, in order: `0-train.c-1.model`,
  /// `1-train.c-10.model`, ..., and `index.json`, a list of {step, parameters, file}: the step, the
  /// values that distinguish the instance, and its entry in the folder.
  bool gathered = false;
  /// The minimum number of sources of a gathered input; unset: none may be missing. The `file` of a
  /// missing source is null in `index.json`.
  std::optional<unsigned> at_least = {};
  Rare<DataSpec> data = {};
  /// In a repeated step: the output of the round before, which rounds after the first take instead.
  Rare<SourceSpec> then = {};
};

/// A value that a condition takes from the JSON output of another step.
struct OutputValue {
  SourceSpec source = {};
  /// Names of members and numbers of items, from the outside to the inside.
  std::vector<std::string> path = {};
  bool operator==(const OutputValue&) const = default;
};

/// Decides from parameters and outputs whether a step runs. The values have the names that stand in
/// the text's `${...}`.
struct Condition {
  std::string text = {};  ///< `${evaluate.metrics.accuracy} > ${params.threshold}`.
  std::map<std::string, Json> parameters = {};
  std::map<std::string, OutputValue> outputs = {};
  bool operator==(const Condition&) const = default;
};

/// An output of a step: a file or folder that it writes to a given path.
struct OutputSpec {
  std::string name = {};
  std::string file_name = {};  ///< Last component of that path. Default: the output's name.
  bool metrics = false;        ///< A JSON or CSV file; its numbers are stored as metrics.
  bool temp = false;           ///< Removed when no step of the run needs it any more.
  /// With StepSpec::nodes: a folder with what each node has written, by its number. Otherwise the
  /// output is that of the first node.
  bool from_all_nodes = false;
};

/// A C++ program whose functions are steps: the files that are needed to start it again.
struct Program {
  /// Absolute.
  std::filesystem::path executable = {};
  /// Absolute paths of the shared libraries that it was started with; none if it is static.
  std::vector<std::filesystem::path> libraries = {};
  /// Absolute path of the dynamic loader; empty if it is static.
  std::filesystem::path loader = {};
};

/// Marks a step as a function of a program. Its command has only the program's arguments,
/// `--pipe-step NAME`; each orchestrator adds the words that start the program (Layout::program).
struct ProgramStep {
  /// Shared, because thousands of steps have the same program. Never null.
  std::shared_ptr<const Program> program = {};
  /// For messages, such as `Model train(const Dataset&, int)`.
  std::string function = {};
  /// Set by the user. If not empty, the key contains it instead of the program's content.
  std::string version = {};
  /// Where the function lies in the program's memory, in hex; a part of the key, because a program
  /// can declare now one function and now another as the same step. Empty if `version` is set.
  std::string address = {};
};

/// Identifies one of the instances that `matrix` makes of a step.
struct InstanceSpec {
  /// The name that the instances share.
  RareText of = {};
  /// The axes, in order, which distinguish the instance; StepSpec::axis_value() has their values.
  /// The instances share the list.
  SharedList<std::string> axes = {};
  /// The values of axes that are not among the parameters, because the step's function does not
  /// take them.
  RareMap<std::map<std::string, Json>> other_values = {};
  /// The axes whose values a step of the run has made, each with the output that holds them.
  RareList<std::pair<std::string, SourceSpec>> taken = {};
  bool operator==(const InstanceSpec&) const = default;
};

/// An axis of a MatrixSpec: the file lists its values, or another step makes them.
struct AxisSpec {
  std::string name = {};
  std::vector<Json> values = {};  ///< The listed values; empty if `items` is set.
  /// The output that has the values: a list in JSON, or a folder, whose entries are the values.
  std::optional<OutputValue> items = {};
};

/// A matrix in which another step makes the values of at least one axis: the run makes the
/// instances after that step.
struct MatrixSpec {
  std::string of = {};  ///< The step that declares the matrix: another step for `matrix: STEP`.
  std::vector<AxisSpec> axes = {};
};

/// Steps that run in rounds together: those with the same `of`. The run makes the steps of a round
/// once the round before has ended.
struct RepeatSpec {
  std::string of = {};  ///< The step that declares the repetition: another step for `repeat: STEP`.
  /// A condition over outputs of the repeated steps. The repetition ends after a round in which the
  /// condition is true.
  Rare<Condition> until = {};
  unsigned max = 1;  ///< Maximum number of rounds.
};

/// A step with its defaults applied.
struct StepSpec {
  /// Letters, digits, `_`, `-`, `.`; begins with a letter or digit. With a `.`: an instance.
  std::string name = {};
  Rare<InstanceSpec> instance = {};
  /// Set if the run makes the step's instances. An input from a step with the same matrix takes the
  /// output of the instance with the same values; a gathered input, those of all.
  Rare<MatrixSpec> matrix = {};
  /// Set if the run makes a step for each round. Other steps take the outputs of the last round.
  Rare<RepeatSpec> repeat = {};
  RareText description = {};
  Command command = {};
  /// Set if the step is a function of a C++ program.
  Rare<ProgramStep> program = {};
  /// Scalars, including the pipeline's; the step's own take precedence.
  std::map<std::string, Json> parameters = {};
  /// In the file's order.
  std::vector<InputSpec> inputs = {};
  /// The instances of a matrix share them.
  SharedList<OutputSpec> outputs = {};
  /// Steps that must succeed first, besides those of the inputs; with another `run_on`, steps that
  /// must end first.
  RareList<std::string> after = {};
  /// The step is skipped if this condition is false.
  Rare<Condition> when = {};
  /// A question to a person: the step does not begin before it is approved. Empty: none.
  RareText wait = {};
  /// Files, folders and globs below PipelineSpec::root. Unset: those that the command names.
  CopyOnWrite<StringList> code = {};
  /// Absolute path of the folder that `code` and the command's paths refer to, for a step of an
  /// included file; empty: PipelineSpec::root.
  RarePath code_root = {};
  /// Further files of the step's code, content by name.
  RareMap<StringMap> files = {};
  RareMap<StepEnvironment> environment = {};
  RareList<SecretSpec> secrets = {};
  /// Values from `.env` beside the file, for `environment` without values and for `secrets`, where
  /// the user's environment lacks a variable. Holds secrets: must not be shown or stored.
  CopyOnWrite<StringMap> env_file = {};
  /// Merged with the pipeline's. Most steps of a large pipeline share one object.
  CopyOnWrite<Settings> settings = {};
  /// `local`, `docker`, `kubernetes` or `slurm`. Empty: the run's.
  RareText orchestrator = {};
  /// Shared like `settings`.
  CopyOnWrite<RetrySettings> retry = {};
  /// Limit for one attempt.
  Rare<Duration> timeout = {};
  /// Time without output after which a running attempt is reported as stalled.
  Rare<Duration> stalled_after = {};
  /// Age from which an earlier success is not reused.
  Rare<Duration> cache_max_age = {};
  /// A part of the key: an earlier success is reused until this text changes.
  RareText cache_until = {};
  /// Units of the machine's named limits that an attempt holds.
  RareMap<std::map<std::string, unsigned>> uses = {};
  /// Containers that run beside each attempt, by the name under which the step reaches them.
  RareMap<std::map<std::string, ServiceSpec>> services = {};
  /// Absolute path of the folder that receives copies of the outputs on success; empty: none.
  RarePath publish_to = {};
  RunOn run_on = RunOn::success;
  /// Maximum number of the step's instances that run at the same time; 0: no limit.
  unsigned max_parallel = 0;
  /// Set if each attempt is several processes, on one node or more.
  NodesSpec nodes = {.count = 0};
  bool cache = true;
  /// Whether the run continues, and can succeed, if the step fails.
  bool allow_failure = false;
  /// Whether the step has a folder that survives its attempts until one succeeds.
  bool checkpoint = false;
  /// Line of the step's name in its source file, counted from 1; 0: unknown.
  unsigned line = 0;
  /// Column of the step's name in that line, counted from 1; 0: unknown.
  unsigned column = 0;
  /// The file that has `line`: 0 for PipelineSpec::file, n for the n-th of the included files.
  unsigned file = 0;
  /// Names under which outputs are published on success, keyed by output.
  RareMap<StringMap> publish = {};
  /// The user's version of data that the step reads in other ways than as inputs, such as volumes;
  /// a part of the key.
  RareText version = {};

  /// Returns the value of one of the instance's axes. Throws std::out_of_range for another name.
  const Json& axis_value(const std::string& axis) const {
    const auto other = instance->other_values.find(axis);
    return other == instance->other_values.end() ? parameters.at(axis) : other->second;
  }
};

/// A validated pipeline.
struct PipelineSpec {
  std::string name = {};
  std::string description = {};
  /// Parameters of the file, with `--param` applied.
  std::map<std::string, Json> parameters = {};
  /// Names of the parameters that settings, durations, folders or data refer to; such a parameter
  /// need not be one of a step. Sorted.
  std::vector<std::string> filled_parameters = {};
  /// In the file's order; acyclic, references valid.
  std::vector<StepSpec> steps = {};
  ExecutionMode execution_mode = ExecutionMode::continue_on_failure;
  /// Whether all steps that may run at the same time must have their GPUs at the same time: a
  /// machine with fewer GPUs is refused before the run. If false, steps wait for one another's
  /// GPUs.
  bool reserve_gpus_together = false;
  /// How many units of each named limit the machine has, see StepSpec::uses; the profile's.
  std::map<std::string, unsigned> limits = {};
  std::vector<std::string> tags = {};
  /// The metrics that say how good a run is, `STEP.METRIC`; at most 8. Default: the metrics of the
  /// steps after which no other step with metrics follows.
  std::vector<std::string> headline = {};
  /// Webhooks that are called when a run has ended.
  std::vector<NotifySpec> notify = {};
  /// Every file that the spec was made from, such as requirements files; includes `file`.
  std::vector<std::filesystem::path> sources = {};
  /// Absolute path of the source file; empty for a program.
  std::filesystem::path file = {};
  /// Absolute paths of the included files; a file that is included twice is here twice.
  std::vector<std::filesystem::path> included = {};
  /// Absolute path of the folder that code and relative paths refer to.
  std::filesystem::path root = {};
};

}  // namespace pipeline

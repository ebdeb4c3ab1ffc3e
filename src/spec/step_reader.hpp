/// @file
/// Reads the keys of a pipeline file into values. References between steps are checked later
/// (references.hpp).
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <pipeline/spec.hpp>

#include "core/instance.hpp"
#include "settings/settings.hpp"
#include "spec/matrix.hpp"

namespace pipeline::spec {

/// The keys that both the pipeline and a step may have; the pipeline's values are each step's
/// defaults.
struct Defaults {
  std::map<std::string, Json> parameters;
  std::set<std::string>
      taken_parameters;  ///< In a step: the pipeline's parameters that it names under `parameters`.
  std::optional<std::vector<std::string>> shell;  ///< See Command::interpreter.
  StepEnvironment environment;
  std::vector<SecretSpec> secrets;
  StringList code;
  CopyOnWrite<Settings> settings;
  bool has_settings = false;
  RetrySettings retry;
  std::optional<Duration> timeout, stalled_after;
  std::optional<bool> cache;
};

struct Scope;

/// A step with the source positions that later checks report. The values live as long as the
/// document.
struct ReadStep {
  StepSpec spec;
  const Scope* scope = nullptr;  ///< Never null.
  const core::Value* key = nullptr;
  const core::Value* body = nullptr;
  const core::Value* command = nullptr;
  std::vector<core::Span> input_spans;  ///< Position of each input's source.
  std::vector<core::Span> after_spans;
  /// The selectors of the inputs and of `after`. The spec has only the steps' names until matrices
  /// are expanded.
  std::vector<core::Selector> input_selectors, after_selectors;
  const core::Value *when = nullptr, *publish = nullptr;
  /// An output that the condition depends on.
  struct ConditionValue {
    std::string name;  ///< In StepSpec::when's `outputs`.
    core::Selector selector;
    core::Span span;
  };
  std::vector<ConditionValue> condition_values;
  std::optional<Matrix> matrix;
  std::optional<OpenMatrix> open;  ///< Instead of `matrix`, if another step makes some values.
  /// Parameters that belong to the step even if its command does not name them.
  std::set<std::string> own_parameters;
};

class StepReader {
 public:
  /// @param scope the file that is read: relative paths are resolved against its folder
  /// @param root  the pipeline's folder, which paths in the steps' settings are relative to
  StepReader(const Scope& scope, std::filesystem::path root, settings::Diagnostics& diagnostics);
  ~StepReader();
  /// @param pipeline the pipeline's defaults, for a step; null if `map` is the pipeline
  Defaults read_defaults(const core::Value& map, const Defaults* pipeline = nullptr);
  /// The files that the settings name, and the files that those include.
  const std::set<std::filesystem::path>& sources() const { return sources_; }
  /// Returns the parameters that a file gives to one that it includes.
  /// @param defaults those of the including file
  Defaults read_given_parameters(const core::Value& value, const Defaults& defaults);
  /// Returns the step with `pipeline` merged in. Its command is parsed later, when all names are
  /// known.
  ReadStep read_step(const core::Value& key, const core::Value& body, const Defaults& pipeline);

 private:
  std::optional<Duration> read_time(const char* key, const core::Value& value);
  void read_settings(const core::Value& map, Settings& settings);
  void check_file(const core::Value& settings, std::initializer_list<std::string_view> keys,
                  bool folder);
  void check_code(const core::Value& code, const std::vector<std::string>& patterns);
  void read_parameters(const core::Value& map, Defaults& defaults, const Defaults* pipeline);
  void take_parameter(const core::Value& name, Defaults& defaults, const Defaults& pipeline);
  void read_shell(const core::Value& value, Defaults& defaults);
  void read_environment(const core::Value& value, Defaults& defaults);
  void read_secrets(const core::Value& value, Defaults& defaults);
  void read_inputs(const core::Value& value, ReadStep& step);
  /// Reads the members of a step that are not also defaults of a pipeline.
  void read_members(const core::Value& body, ReadStep& step);
  /// Merges the step's own parameters, environment and settings with the pipeline's.
  void add_defaults(ReadStep& step, Defaults own, const Defaults& pipeline);
  void check_variables(const ReadStep& step);

  const Scope& scope_;
  std::filesystem::path root_;      ///< The folder of the file.
  std::filesystem::path pipeline_;  ///< The pipeline's folder.
  settings::Diagnostics& diagnostics_;
  std::set<std::filesystem::path> sources_;
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

/// Completes what a step or an included file has by what the pipeline or the including file has;
/// its own takes precedence. Parameters stay as they are.
void inherit(Defaults& own, const Defaults& from);

/// Returns one of `words`; reports anything else, with a suggestion.
std::optional<std::string> read_word(const char* key, const core::Value& value,
                                     const std::vector<std::string>& words,
                                     settings::Diagnostics& diagnostics);

/// Same as report_unknown_keys(), with advice for names that ZenML, GitLab and other tools use for
/// settings with another name here.
void report_keys(const core::Value& map, const std::vector<std::string>& allowed,
                 const std::string& place, settings::Diagnostics& diagnostics);

/// Returns true if the map has an unknown key that resembles `key`; the error about that key is
/// then sufficient.
bool has_misspelt(const core::Value& map, const std::string& key);

extern const std::vector<std::string> pipeline_keys, step_keys;

}  // namespace pipeline::spec

/// @file
/// The keys of a pipeline file to values; what steps say of each other is checked afterwards
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

/// What both the pipeline and a step may say; the pipeline's is each step's default.
struct Defaults {
  std::map<std::string, Json> parameters;
  std::set<std::string>
      taken_parameters;  ///< Of a step: those of the pipeline that it names under `parameters`.
  std::optional<std::vector<std::string>> shell;  ///< Command::interpreter
  StepEnvironment environment;
  std::vector<SecretSpec> secrets;
  StringList code;
  Settings settings;
  RetrySettings retry;
  std::optional<Duration> timeout;
  std::optional<bool> cache;
};

/// A step with the places in the document that later checks point at. The values live as long as
/// the document.
struct ReadStep {
  StepSpec spec;
  const core::Value* key = nullptr;
  const core::Value* body = nullptr;
  const core::Value* command = nullptr;
  std::vector<core::Span> input_spans;  ///< Of each input's `step.output`.
  std::vector<core::Span> after_spans;
  /// How each input and each of `after` names its step, of which the spec has only the name until
  /// the matrices are expanded.
  std::vector<core::Selector> input_selectors, after_selectors;
  std::optional<Matrix> matrix;
  /// Parameters that belong to the step although its command may not name them.
  std::set<std::string> own_parameters;
};

class StepReader {
 public:
  /// @param root the folder that relative paths are taken from
  StepReader(std::filesystem::path root, settings::Diagnostics& diagnostics);
  ~StepReader();
  /// @param pipeline what the pipeline says, for a step; null: `map` is the pipeline
  Defaults read_defaults(const core::Value& map, const Defaults* pipeline = nullptr);
  /// The files that the settings name, and what those include.
  const std::set<std::filesystem::path>& sources() const { return sources_; }
  /// The step with `pipeline` merged in; its command is read later, when all names are known.
  ReadStep read_step(const core::Value& key, const core::Value& body, const Defaults& pipeline);

 private:
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
  void read_outputs(const core::Value& value, StepSpec& step);
  /// The members of a step that are not defaults of a pipeline as well.
  void read_members(const core::Value& body, ReadStep& step);
  /// Completes the step by what it and the pipeline say of parameters, environment and settings.
  void add_defaults(ReadStep& step, Defaults own, const Defaults& pipeline);
  void check_variables(const ReadStep& step);

  std::filesystem::path root_;
  settings::Diagnostics& diagnostics_;
  std::set<std::filesystem::path> sources_;
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

/// One of `words`; anything else is reported, with the word that was probably meant.
std::optional<std::string> read_word(const char* key, const core::Value& value,
                                     const std::vector<std::string>& words,
                                     settings::Diagnostics& diagnostics);

/// report_unknown_keys(), with advice for the names that ZenML, GitLab and others have for what is
/// said differently here.
void report_keys(const core::Value& map, const std::vector<std::string>& allowed,
                 const std::string& place, settings::Diagnostics& diagnostics);

/// True if the map has a key that is taken for a misspelt `key`: then that error says it all.
bool has_misspelt(const core::Value& map, const std::string& key);

extern const std::vector<std::string> pipeline_keys, step_keys;

}  // namespace pipeline::spec

/// @file
/// The values that are read for a step and for the pipeline's defaults.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <pipeline/spec.hpp>

#include "model/instance.hpp"
#include "settings/settings.hpp"
#include "spec/matrix.hpp"

namespace pipeline::spec {

/// The keys of both pipelines and steps; the pipeline's values are each step's defaults.
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
  CopyOnWrite<RetrySettings> retry;
  bool has_retry = false;
  std::optional<Duration> timeout, stalled_after;
  std::optional<bool> cache;
  std::optional<Duration> cache_max_age;  ///< Part of the key `cache`, as is `cache_until`.
  std::string cache_until;
  std::filesystem::path
      publish_to;  ///< A key of steps only, as are `wait`, `services` and `nodes`.
  std::string wait;
  std::map<std::string, ServiceSpec> services;
  NodesSpec nodes{.count = 0};
};

struct FileScope;
class StepReader;

/// A step with the source positions that later checks report. The core::Values that it points to
/// are parts of the document. The spec is an element of the list that becomes the pipeline's, so
/// that a large pipeline is in memory once.
struct ReadStep {
  StepSpec& spec;
  const FileScope* scope = nullptr;  ///< Never null.
  StepReader* reader = nullptr;      ///< Never null.
  const core::Value* key = nullptr;
  core::Value* body = nullptr;  ///< Its members that are not in the spec yet, or that errors show.
  /// Path of the notebook that stands in place of a command.
  Rare<std::string> notebook;
  /// The steps that an input or an item of `after` selects; until matrices are expanded, the spec
  /// has names only.
  struct Reference {
    model::Selector selector;
    core::Span span;
  };
  /// As many as the spec has; without a step for an input with data.
  RareList<Reference> inputs, after;
  /// A repeated step's input from the round before.
  struct ThenSource {
    std::size_t input;  ///< Index of the input.
    model::Selector selector;
    core::Span span;
  };
  RareList<ThenSource> then_sources;
  /// An output that a condition depends on.
  struct ConditionValue {
    std::string name;  ///< As in Condition::outputs.
    model::Selector selector;
    core::Span span;
  };
  RareList<ConditionValue> condition_values, until_values;  ///< For `when`; for `until`.
  Rare<Matrix> matrix;
  Rare<OpenMatrix> open;  ///< Instead of `matrix`, if another step makes some values.
  /// Parameters that belong to the step even if its command does not name them.
  Rare<std::set<std::string>> own_parameters;
  /// Keys of the step, and indexes of its inputs, whose texts name parameters: they are read for
  /// each instance, with the values of `filled_from` and of its matrix.
  RareList<std::string> filled_keys;
  RareList<std::size_t> filled_inputs;
  RareMap<std::map<std::string, Json>> filled_from;
  void add_own_parameter(std::string name) {
    if (!own_parameters) own_parameters.emplace();
    own_parameters->insert(std::move(name));
  }
  bool is_filled() const { return !filled_keys.empty() || !filled_inputs.empty(); }
  RareList<std::filesystem::path> files;  ///< The files that its matrix was read from.
};

}  // namespace pipeline::spec

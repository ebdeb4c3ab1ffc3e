/// @file
/// A step, and the values of keys that pipelines and steps share, while a file is read.
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
  /// The pipeline's parameters that a step names under `parameters`.
  std::set<std::string> taken_parameters;
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
  // The keys of steps alone whose texts may name parameters.
  std::filesystem::path publish_to;
  std::string wait;
  std::map<std::string, ServiceSpec> services;
  NodesSpec nodes{.count = 0};
};

struct FileScope;
class StepReader;

/// A step with the source positions that later checks report. Its pointers to core::Value refer to
/// parts of the document. The spec is an element of the list that becomes the pipeline's, so
/// that a large pipeline is in memory once.
struct ReadStep {
  StepSpec& spec;
  const FileScope* scope = nullptr;  ///< Never null.
  StepReader* reader = nullptr;      ///< Never null.
  const core::Value* key = nullptr;
  core::Value* body = nullptr;  ///< The members that are not in the spec yet, or that errors show.
  /// Path of the notebook that stands in place of a command.
  Rare<std::string> notebook;
  /// The steps that an input or an item of `after` selects. Until matrices are expanded, the spec
  /// has only the name of the step with the matrix.
  struct Reference {
    model::Selector selector;
    core::Span span;
  };
  /// One for each input and each `after` of the spec, in the same order; empty for an input with
  /// data.
  RareList<Reference> inputs, after;
  /// The output of the round before that an input of a repeated step takes: its `then`.
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
  Rare<OpenMatrix> open;  ///< In place of `matrix`, if another step makes some of the values.
  /// Parameters that belong to the step even if its command does not name them.
  Rare<std::set<std::string>> own_parameters;
  /// Keys of the step, and indexes of its inputs, whose texts name parameters: they are read for
  /// each instance, with the values of `filled_from` and of its matrix.
  RareList<std::string> keys_to_fill;
  RareList<std::size_t> inputs_to_fill;
  RareMap<std::map<std::string, Json>> filled_from;
  void add_own_parameter(std::string name) {
    if (!own_parameters) own_parameters.emplace();
    own_parameters->insert(std::move(name));
  }
  bool must_be_filled() const { return !keys_to_fill.empty() || !inputs_to_fill.empty(); }
  RareList<std::filesystem::path> files;  ///< The tables that the matrix was read from.
};

}  // namespace pipeline::spec

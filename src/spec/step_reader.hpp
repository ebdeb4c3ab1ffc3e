/// @file
/// Reads the keys of a pipeline file into values. Members of StepReader for inputs are in
/// input_reader.cpp, and those that fill in parameters in placeholders.cpp. References between
/// steps are checked later (references.hpp).
#pragma once

#include <filesystem>
#include <memory>
#include <set>

#include "spec/memory_budget.hpp"
#include "spec/read_step.hpp"

namespace pipeline::spec {

/// Reads the steps of one file, and the defaults of that file.
class StepReader {
 public:
  /// @param scope the file that is read: relative paths are resolved against its folder
  /// @param root the pipeline's folder, which paths in the steps' settings are relative to
  /// @param budget must outlive this object
  StepReader(const FileScope& scope, std::filesystem::path root, MemoryBudget& budget,
             settings::Diagnostics& diagnostics);
  ~StepReader();
  /// Whether the texts of a map still have their placeholders, or the values of the parameters.
  enum class Texts { as_written, filled };
  /// Returns the values of the keys that pipelines and steps share. With Texts::as_written, leaves
  /// out the keys whose texts name parameters: fill() reads those.
  /// @param pipeline the pipeline's defaults, for a step; null if `map` is the pipeline
  Defaults read_defaults(const core::Value& map, const Defaults* pipeline = nullptr,
                         Texts texts = Texts::as_written);
  /// Returns the files that the settings name, and the files that those include.
  const std::set<std::filesystem::path>& sources() const { return sources_; }
  /// Returns the parameters that a file gives to one that it includes.
  /// @param defaults of the including file
  Defaults read_given_parameters(const core::Value& value, const Defaults& defaults);
  /// Reads the keys of the pipeline, or of an included file, whose texts name parameters, once
  /// the parameters are known.
  /// @param from the defaults that an included file inherits; null for the pipeline
  void fill(const core::Value& map, Defaults& defaults, const Defaults* from);
  /// Reads the keys and inputs of a step, or of an instance, whose texts name parameters.
  /// @param values the parameters
  void fill(const ReadStep& step, const std::map<std::string, Json>& values, StepSpec& spec);
  /// Returns the step with `pipeline` merged in; its command is parsed once all names are known.
  /// @param body loses the members that no later check reads, so that a large pipeline is not in
  /// memory twice
  /// @param spec receives the values; must live as long as the result
  ReadStep read_step(const core::Value& key, core::Value& body, const Defaults& pipeline,
                     StepSpec& spec);

 private:
  std::optional<Duration> read_time(const char* key, const core::Value& value);
  void read_retry(const core::Value& value, Defaults& defaults);
  void read_wait(const core::Value& value, Defaults& defaults);
  void read_code(const core::Value& value, Defaults& defaults);
  void read_cache(const core::Value& value, Defaults& defaults);
  void read_settings(const core::Value& map, Settings& settings);
  /// Reports a file or folder that does not exist and that the settings name under the path `keys`.
  void check_file(const core::Value& settings, std::initializer_list<std::string_view> keys,
                  std::filesystem::file_type type);
  /// Reports a file or folder that does not exist. @param value the position of the error
  void check_path(const core::Value& value, const std::string& name,
                  std::filesystem::file_type type);
  void check_code(const core::Value& code, const std::vector<std::string>& patterns);
  void read_shell(const core::Value& value, Defaults& defaults);
  void read_inputs(const core::Value& value, ReadStep& step);
  std::optional<std::pair<model::Selector, SourceSpec>> read_source(const std::string& key,
                                                                    const core::Value& value);
  void read_source_by_round(const core::Value& name, const core::Value& map, ReadStep& step);
  void read_gathered(const core::Value& name, const core::Value& map, ReadStep& step);
  core::Value filled_members(const core::Value& map, const std::map<std::string, Json>& values);
  /// Reads the members of a step that a pipeline does not have.
  void read_members(const core::Value& body, ReadStep& step);
  /// Merges the step's own parameters, environment and settings with the pipeline's.
  void add_defaults(ReadStep& step, Defaults own, const Defaults& pipeline);
  /// Reads `publish`, and reports keys of the step that contradict each other.
  void check_step(ReadStep& step);

  const FileScope& scope_;
  std::filesystem::path folder_;  ///< The folder of the file that is read.
  std::filesystem::path root_;    ///< The pipeline's folder.
  MemoryBudget& budget_;
  settings::Diagnostics& diagnostics_;
  std::set<std::filesystem::path> sources_;
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

/// Completes the values of a step or an included file by those of the pipeline or the including
/// file; own values take precedence. Parameters stay as they are.
void inherit(Defaults& own, const Defaults& from);

}  // namespace pipeline::spec

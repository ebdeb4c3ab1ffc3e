/// @file
/// Reads pipeline.yaml, or an ECS task definition, into a PipelineSpec.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <pipeline/spec.hpp>

#include "core/value.hpp"

namespace pipeline::spec {

struct LoadOptions {
  std::map<std::string, std::string> parameters;  ///< `--param k=v`: the values are read as YAML
                                                  ///< scalars. `STEP.k=v` sets a step's own.
  /// Where a file has parameters, for messages: `few.yaml:2:1`, by name. Others are of `--param`.
  std::map<std::string, std::string> parameter_places = {};
  /// Receives the requests of a task definition that pipe does not support; may be null.
  std::vector<std::string>* notices = nullptr;
};

/// Reads and checks the file. Throws InputError with all errors of the file, or EnvironmentError if
/// it cannot be read. Requirements files are read here, so that DockerSettings::requirements is
/// always a list.
PipelineSpec load(const std::filesystem::path& file, const LoadOptions& options = {});
/// Parses a text as load() does; `file` is the name for messages and the base of relative paths.
PipelineSpec parse(std::string_view text, const std::filesystem::path& file,
                   const LoadOptions& options = {});

/// Reads a document from another source, such as a program, as load() does. Relative paths are
/// resolved against `file`.
PipelineSpec read(const core::Value& root, const std::filesystem::path& file,
                  const LoadOptions& options = {});
/// Converts a task definition to an equivalent pipeline file in YAML. Throws as load() does, and
/// InputError for a file that is not a task definition.
std::string import_task_definition(const std::filesystem::path& file,
                                   std::vector<std::string>& notices);

/// Returns the JSON Schema of a pipeline file (draft 2020-12); every key has its description.
nlohmann::json schema();

/// A file of a step's code.
struct CodeFile {
  std::string relative_path;  ///< Relative to the pipeline's root, with `/`.
  std::filesystem::path source;
  std::string reason;  ///< Shown by `plan -v`: `named in command`, `imported by train.py:3`, `code:
                       ///< src/*.py`.
};

struct CodeSet {
  std::vector<CodeFile> files;                   ///< Sorted by relative_path.
  std::vector<std::filesystem::path> looked_at;  ///< Folders and missing candidates that the result
                                                 ///< depends on, in addition to the files.
};

/// Finds the files that a step sees: those that its `code:` lists or, without a list, the files of
/// the root that its command names and those that these import (Python) or source (shell). Throws
/// InputError for a pattern that matches nothing or leaves the root. Equal steps share results, so
/// use one resolver for a run.
class CodeResolver {
 public:
  explicit CodeResolver(const PipelineSpec& pipeline);
  ~CodeResolver();
  const CodeSet& code_of(const StepSpec& step);
  /// Returns advice for a step that failed because of a missing file: the root's file that the
  /// output names and the step's code lacks, if there is one. Otherwise other advice from the
  /// output, such as a package to install or another folder to write to.
  std::optional<std::string> missing_file(const StepSpec& step, std::string_view output);
  /// Returns the scripts that the command passes to an interpreter and that are not in the root.
  std::vector<std::string> missing_scripts(const StepSpec& step);
  /// Returns all files that can be code, sorted.
  std::vector<std::string> all_files();

 private:
  struct Implementation;
  std::unique_ptr<Implementation> self_;
};

}  // namespace pipeline::spec

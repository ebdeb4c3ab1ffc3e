/// @file
/// pipeline.yaml, or an ECS task definition, to PipelineSpec.
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

/// What there is to say of a file besides its pipeline.
struct FileNotes {
  bool is_task = false;              ///< It is an ECS task definition.
  std::vector<std::string> notices;  ///< What that asks for and pipe does not do.
};

struct LoadOptions {
  std::map<std::string, std::string> parameters;  ///< `--param k=v`: the values are read as YAML
                                                  ///< scalars. `STEP.k=v` sets a step's own.
  FileNotes* notes = nullptr;                     ///< Filled, if there is one.
};

/// Reads and checks the file; throws InputError with everything that is wrong in it,
/// EnvironmentError if it cannot be read. Requirements files are read here, so that
/// DockerSettings::requirements is always a list.
PipelineSpec load(const std::filesystem::path& file, const LoadOptions& options = {});
/// The same for a text; `file` is used for messages and as the place of relative paths.
PipelineSpec parse(std::string_view text, const std::filesystem::path& file,
                   const LoadOptions& options = {});

/// The same for a document from elsewhere, such as a program. `file` is where relative paths are
/// taken from.
PipelineSpec read(const core::Value& root, const std::filesystem::path& file,
                  const LoadOptions& options = {});
/// A task definition as a pipeline file, in YAML: the same pipeline. Throws as load() does, and
/// InputError for a file that is none.
std::string import_task_definition(const std::filesystem::path& file,
                                   std::vector<std::string>& notices);

/// The JSON Schema of a pipeline file (draft 2020-12), every key with its description.
nlohmann::json schema();

/// A file that a step's code is made of.
struct CodeFile {
  std::string relative_path;  ///< Below the pipeline's root, with `/`.
  std::filesystem::path source;
  std::string
      reason;  ///< For `plan -v`: `named in command`, `imported by train.py:3`, `code: src/*.py`.
};

struct CodeSet {
  std::vector<CodeFile> files;  ///< Sorted by relative_path.
  std::vector<std::filesystem::path>
      looked_at;  ///< Folders and missing candidates that the answer depends on, besides the files.
};

/// Which files a step sees: what its `code:` lists, or, where it lists nothing, the files of the
/// root that its command names plus what those import (Python) or source (shell). Throws InputError
/// for a pattern that matches nothing or leaves the root. Answers are shared between equal steps:
/// keep one resolver for a run.
class CodeResolver {
 public:
  explicit CodeResolver(const PipelineSpec& pipeline);
  ~CodeResolver();
  const CodeSet& code_of(const StepSpec& step);
  /// For a step that failed over a missing file: the root's file that `message` names but the
  /// step's code lacks, if any. Else what else the output gives to advise: a package, another place
  /// to write to.
  std::optional<std::string> missing_file(const StepSpec& step, std::string_view output);
  /// Scripts that the command hands to an interpreter, and that are not in the root.
  std::vector<std::string> missing_scripts(const StepSpec& step);
  /// All files that may be code, sorted.
  std::vector<std::string> all_files();

 private:
  struct Implementation;
  std::unique_ptr<Implementation> self_;
};

}  // namespace pipeline::spec

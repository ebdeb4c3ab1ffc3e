/// @file
/// Finds the files of the pipeline's folder that are a step's code, and what a failed step lacks.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/spec.hpp>

namespace pipeline::spec {

/// A file of a step's code.
struct CodeFile {
  std::string relative_path;     ///< Relative to the folder of the step's code, with `/`.
  std::filesystem::path source;  ///< Absolute.
  std::string reason;  ///< Shown by `plan -v`: `named in command`, `imported by train.py:3`, `code:
                       ///< src/*.py`.
};

/// The files of a step's code.
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
  /// Returns the step's files; the reference is valid as long as the resolver.
  const CodeSet& code_of(const StepSpec& step);
  /// Returns advice for a failed step, derived from its output: to add the root's file that the
  /// output names to the step's code, to install a package, to write to another folder.
  std::optional<std::string> failure_advice(const StepSpec& step, std::string_view output);
  /// Returns the scripts that the command passes to an interpreter and that are not in the root.
  std::vector<std::string> missing_scripts(const StepSpec& step);
  /// Returns all files that can be code, sorted.
  std::vector<std::string> all_files();

 private:
  struct Implementation;
  std::unique_ptr<Implementation> self_;
};

}  // namespace pipeline::spec

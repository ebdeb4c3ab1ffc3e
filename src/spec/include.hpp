/// @file
/// Reads the files that `include:` names. Their steps become steps of the pipeline, with the
/// include's `prefix` before their names.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostic.hpp"
#include "core/value.hpp"
#include "spec/step_reader.hpp"

namespace pipeline::spec {

/// For each name of a step in the pipeline, the numbers of the included files that have such a
/// step, ascending.
using StepFiles = std::map<std::string, std::vector<unsigned>, std::less<>>;

/// A file of a pipeline: the pipeline's own, or an included one.
struct FileScope {
  FileScope* parent = nullptr;  ///< The including file; null for the pipeline's own.
  unsigned number = 0;          ///< Span::file of its values.
  std::filesystem::path file;   ///< Absolute.
  core::Value root;
  std::string prefix;  ///< Stands before the name of each step, `prep-`; may be empty.
  const core::Value* parameters = nullptr;  ///< Values that the including file gives.
  core::Span span;                          ///< Position of the include.
  unsigned end = 0;  ///< 1 more than the number of the last file included here, at any depth.
  const StepFiles* step_files = nullptr;
  Defaults defaults;

  std::filesystem::path folder() const { return file.parent_path(); }
  /// Returns the name that the step which this file calls `name` has in the pipeline. Looks for the
  /// step in this file and those that it includes, then in the including files, from the inside
  /// out.
  std::string step_called(const std::string& name) const;
};

/// The files of a pipeline.
class Files {
 public:
  /// Reads the included files. Reports those that are missing, are not maps, or include themselves.
  /// @param source the text of `file`; must outlive this object
  Files(core::Value root, std::filesystem::path file, std::string_view source,
        settings::Diagnostics& diagnostics);

  /// The pipeline's own file.
  FileScope& main() { return scopes_.front(); }
  /// The scopes of all files, each after those that it includes: the order of the steps.
  const std::vector<FileScope*>& in_order() const { return order_; }
  /// The texts by Span::file.
  const std::vector<std::string_view>& texts() const { return texts_; }
  /// Returns the absolute paths of the included files: the one with Span::file N has the index N
  /// - 1.
  std::vector<std::filesystem::path> included() const;
  /// Returns true if every file that is named could be read.
  bool are_complete() const { return read_ == named_; }

 private:
  void read_includes(FileScope& scope);
  void include(FileScope& parent, const core::Value& entry);
  void load(FileScope& parent, const core::Value& place, FileScope made);
  void name_steps(FileScope& scope);
  bool may_include(const FileScope& parent, const core::Value& place,
                   const std::filesystem::path& file);

  settings::Diagnostics& diagnostics_;
  std::deque<FileScope> scopes_;    ///< Indexed by number, at stable addresses.
  std::deque<std::string> loaded_;  ///< The texts of the included files.
  std::vector<std::string_view> texts_;
  StepFiles step_files_;
  std::size_t bytes_ = 0;             ///< Size of all included files.
  std::size_t named_ = 0, read_ = 0;  ///< Numbers of includes, and of those that could be read.
  std::set<std::filesystem::path> wrong_yaml_;  ///< Files that are not YAML: each reported once.
  std::vector<FileScope*> order_;
};

/// Sets the parameters of an included file to the values that the including file gives. Reports
/// values of another type, and values for parameters that the file does not declare.
/// @param given the values, and the names of the including file's own parameters that are passed on
void give_parameters(FileScope& scope, const Defaults& given, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec

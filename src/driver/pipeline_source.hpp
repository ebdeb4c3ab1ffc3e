/// @file
/// The pipeline that the options name, and the files that its steps see. Files are read on first
/// use, because a run with nothing to do needs none of them.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "driver/workspace.hpp"
#include "engine/run.hpp"
#include "spec/code_resolver.hpp"

namespace pipeline::driver {

class PipelineSource {
 public:
  /// Keeps a reference to the workspace. Throws InputError if there is no such file.
  explicit PipelineSource(Workspace& workspace)
      : workspace_(workspace), file_(workspace.pipeline_file()) {}
  PipelineSource(const PipelineSource&) = delete;
  PipelineSource& operator=(const PipelineSource&) = delete;

  const std::filesystem::path& file() const { return file_; }
  /// Throws InputError with all errors of the file.
  const PipelineSpec& pipeline();
  spec::CodeResolver& resolver();

  /// Returns the steps that `--step` selects, including their dependencies; without `--step` all
  /// steps. Throws InputError for an unknown step.
  std::vector<const StepSpec*> selected_steps();
  /// Returns the files from which the spec was read and the code files were selected.
  std::vector<std::filesystem::path> sources();
  /// Returns the provider of the steps' files; it refers to this object.
  /// @param scripts folder for texts of a C++ program that become files of a step
  engine::CodeProvider code(std::filesystem::path scripts);

 private:
  /// Returns the step's files: those of the root, and those that the program wrote into the spec.
  const std::vector<store::TreeEntry>& files_of(const StepSpec& step,
                                                const std::filesystem::path& scripts);

  Workspace& workspace_;
  const std::filesystem::path file_;
  std::optional<PipelineSpec> pipeline_;
  std::optional<spec::CodeResolver> resolver_;
  std::map<std::pair<const spec::CodeSet*, StringMap>, std::vector<store::TreeEntry>> trees_;
};

}  // namespace pipeline::driver

/// @file
/// The pipeline that the options name, and the files that its steps see. Nothing is read before it
/// is asked for: a run with nothing to do needs none of it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/context.hpp"
#include "engine/run.hpp"
#include "spec/pipeline_file.hpp"

namespace pipeline::cli {

class PipelineSource {
 public:
  /// Refers to the context. Throws InputError if there is no such file.
  explicit PipelineSource(Context& context) : context_(context), file_(context.pipeline_file()) {}
  PipelineSource(const PipelineSource&) = delete;
  PipelineSource& operator=(const PipelineSource&) = delete;

  const std::filesystem::path& file() const { return file_; }
  /// Throws InputError with everything that is wrong with the file.
  const PipelineSpec& pipeline();
  /// Whether the file is an ECS task definition.
  bool is_task() { return pipeline(), is_task_; }
  spec::CodeResolver& resolver();

  /// The steps that `--step` asks for and the steps that these need; without `--step` all steps.
  /// Throws InputError for an unknown step.
  std::vector<const StepSpec*> selected_steps();
  /// The files that the spec and the choice of the code files were made from.
  std::vector<std::filesystem::path> sources();
  /// @param scripts folder for texts of the program that become files of a step
  engine::CodeProvider code(std::filesystem::path scripts);

 private:
  /// The step's files: those of the root, and those that the program wrote into the spec.
  const std::vector<store::TreeEntry>& files_of(const StepSpec& step,
                                                const std::filesystem::path& scripts);

  Context& context_;
  const std::filesystem::path file_;
  std::optional<PipelineSpec> pipeline_;
  bool is_task_ = false;
  std::optional<spec::CodeResolver> resolver_;
  std::map<std::pair<const spec::CodeSet*, StringMap>, std::vector<store::TreeEntry>> trees_;
};

}  // namespace pipeline::cli

/// @file
/// The summary at the end of a run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/run_model.hpp"
#include "cli/text.hpp"
#include "core/error.hpp"
#include "engine/run.hpp"

namespace pipeline::cli {

/// An output and its path.
struct ShownResult {
  std::string name;            ///< `STEP.OUTPUT`.
  std::filesystem::path path;  ///< Path in the artifact store.
  std::uint64_t bytes = 0;
};

struct Summary {
  const RunModel& model;
  engine::RunSummary outcome;
  std::vector<ShownResult> results;
  std::string copy_command;  ///< `pipe artifacts latest STEP.OUTPUT --copy DEST`; empty if there is
                             ///< nothing to copy.
  std::string program =
      "pipe";              ///< Name of the command: another one if a C++ program is the pipeline.
  std::string state = {};  ///< See Context::state_option().
};

/// Returns for each step its status, time, attempts and the run that it was reused from; failures
/// with details and hints, each once; the end; and the paths of the results.
std::string render_summary(const Summary& summary, const Paint& paint);

core::ExitCode exit_code_of(const engine::RunSummary& outcome);

Colour colour_of(StepStatus status);
Colour colour_of(RunStatus status);

}  // namespace pipeline::cli

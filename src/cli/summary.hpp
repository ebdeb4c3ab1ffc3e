/// @file
/// The summary at the end of a run.
#pragma once

#include <string>
#include <vector>

#include "cli/text.hpp"
#include "driver/run_model.hpp"
#include "driver/run_results.hpp"

namespace pipeline::cli {

class Context;

struct Summary {
  const driver::RunModel& model;
  engine::RunSummary outcome;
  std::vector<driver::ShownResult> results;
  std::string copy_command;  ///< `pipe artifacts latest STEP.OUTPUT --copy DEST`; empty if there is
                             ///< nothing to copy.
  std::string program =
      "pipe";              ///< Name of the command: another one if a C++ program is the pipeline.
  std::string state = {};  ///< See Context::state_option().
};

/// Returns for each step its status, time, attempts and the run that it was reused from; failures
/// with details and hints, each once; the end; and the paths of the results.
std::string render_summary(const Summary& summary, const Paint& paint);

/// Prints the end of a run, as text or as the event `summary`.
void show_summary(const Context& context, const driver::RunModel& model, const driver::RunEnd& end);

Colour colour_of(StepStatus status);
Colour colour_of(RunStatus status);

}  // namespace pipeline::cli

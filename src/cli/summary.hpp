/// @file
/// What a run says at its end.
#pragma once

#include <string>
#include <vector>

#include "cli/run_model.hpp"
#include "cli/text.hpp"
#include "core/error.hpp"
#include "engine/run.hpp"

namespace pipeline::cli {

/// An output, and where it is.
struct Result {
  std::string name;  ///< `STEP.OUTPUT`
  std::string path;  ///< In the artifact store, as shown to the user.
  std::uint64_t bytes = 0;
};

struct Summary {
  const RunModel& model;
  engine::RunSummary outcome;
  std::vector<Result> results;
  std::string copy_command;  ///< `pipe artifacts latest STEP.OUTPUT --copy DEST`; empty: there is
                             ///< nothing to copy.
  std::string program =
      "pipe";              ///< As the user calls it: another where a C++ program is the pipeline.
  std::string state = {};  ///< Context::state_option()
};

/// Per step status, time, attempts and the run it was reused from; failures with details and hints,
/// once each; the end; where the results are.
std::string render_summary(const Summary& summary, const Paint& paint);

core::ExitCode exit_code_of(const engine::RunSummary& outcome);

Colour colour_of(StepStatus status);
Colour colour_of(RunStatus status);

}  // namespace pipeline::cli

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
  /// `pipe artifacts latest STEP.OUTPUT --copy DEST`; empty if there is nothing to copy.
  std::string copy_command;
  std::string program = "pipe";  ///< The program's name, which differs for C++ programs.
  std::string state = {};        ///< See Context::state_option().
};

/// Returns a table of the steps (status, time, attempts, and the run that a result was reused
/// from); the failures with details and hints, equal ones once; the run's end; the paths of the
/// results; and the commands that the user may want next.
std::string render_summary(const Summary& summary, const Paint& paint);

/// Prints the end of a run, as text or as the event `summary`.
void show_summary(const Context& context, const driver::RunModel& model, const driver::RunEnd& end);

Colour colour_of(RunStatus status);
/// Returns the status in the words and colour of the tables: a cached step is `reused`.
Table::Cell status_cell(StepStatus status);

}  // namespace pipeline::cli

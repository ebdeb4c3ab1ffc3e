/// @file
/// Failures of steps, as the end of a run and `pipe show` print them.
#pragma once

#include <string>
#include <vector>

#include "cli/text.hpp"
#include "model/failure_groups.hpp"

namespace pipeline::cli {

/// The command that prints the log of a step.
struct LogsCommand {
  std::string command;  ///< `pipe logs RUN`
  std::string state;    ///< ` --state FOLDER`, or empty
};

/// Returns each failure with its last lines and hints; equal failures are shown once. Returns an
/// empty text if there are no failures.
std::string render_failures(std::vector<model::StepFailure> failures, const LogsCommand& logs,
                            const Paint& paint);

}  // namespace pipeline::cli

/// @file
/// Failures of steps, as the end of a run and `pipe show` print them.
#pragma once

#include <string>
#include <vector>

#include "cli/text.hpp"
#include "model/failure_groups.hpp"

namespace pipeline::cli {

/// The commands about a run that texts suggest to the user.
struct RunCommands {
  std::string program;  ///< `pipe`, or the name of a C++ program.
  std::string run;
  std::string state;  ///< See Context::state_option().

  /// Returns `pipe COMMAND RUN`, with more words and the state folder.
  std::string line(const std::string& command, const std::string& more = {}) const {
    return program + " " + command + " " + run + (more.empty() ? "" : " " + more) + state;
  }
};

/// Returns each failure with its last lines and hints; equal failures are shown once. Returns an
/// empty text if there are no failures.
std::string render_failures(std::vector<model::StepFailure> failures, const RunCommands& commands,
                            const Paint& paint);

}  // namespace pipeline::cli

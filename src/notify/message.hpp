/// @file
/// The bodies of notifications: the end of a run, and the question of a step that waits.
#pragma once

#include <string>
#include <vector>

#include <pipeline/execution.hpp>

#include "store/run_store.hpp"

namespace pipeline::notify {

/// Returns the body as JSON text.
/// @param steps   the run's, with their messages
/// @param command shows more of the run: `pipe report RUN`
std::string message(NotifyFormat format, const store::RunRecord& run,
                    const std::vector<store::StepRecord>& steps, const std::string& command);

/// A step's question to a person.
struct Asked {
  std::string run, pipeline, step;
  std::string question;
  std::string command;  ///< Answers it: `pipe answer RUN STEP yes`.
  std::string address;  ///< A page that answers it; a secret. Empty: there is none.
};

/// Returns the body as JSON text.
std::string question_message(NotifyFormat format, const Asked& asked);

}  // namespace pipeline::notify

/// @file
/// The bodies of notifications: the end of a run, and the question of a step that waits.
#pragma once

#include <string>
#include <vector>

#include <pipeline/execution.hpp>

#include "store/run_store.hpp"

namespace pipeline::notify {

/// Returns the body as JSON text.
/// @param steps the run's steps, with their messages
/// @param command shows more of the run: `pipe report RUN`
std::string message(NotifyFormat format, const store::RunRecord& run,
                    const std::vector<store::StepRecord>& steps, const std::string& command);

/// A step's question to a person.
struct StepQuestion {
  std::string run, pipeline, step;
  std::string text;
  std::string command;  ///< Answers the question: `pipe answer RUN STEP yes`.
  std::string address;  ///< Address of a page that answers the question, a secret; empty: no page.
};

/// Returns the body as JSON text.
std::string question_message(NotifyFormat format, const StepQuestion& question);

}  // namespace pipeline::notify

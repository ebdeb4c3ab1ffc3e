/// @file
/// The body of a notification that describes the end of a run.
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

}  // namespace pipeline::notify

/// @file
/// The events of a build, a pull or a push.
#pragma once

#include <string>

#include <pipeline/events.hpp>

#include "async/task.hpp"
#include "core/cancel.hpp"

namespace pipeline::docker {

/// The names in the events of a build.
struct BuildReport {
  std::string image, step, reason;
};

/// Emits BuildStarted, awaits `build`, and emits BuildFinished with the id that it returns or the
/// failure that it throws. Rethrows the failure.
async::Task<std::string> reported(async::Task<std::string> build, BuildReport report,
                                  EventSink& events, core::CancelSource& cancel);

}  // namespace pipeline::docker

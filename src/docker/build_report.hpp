/// @file
/// The events of a build, a pull, a load or a push of an image.
#pragma once

#include <string>

#include <pipeline/events.hpp>

#include "async/task.hpp"
#include "core/cancel.hpp"

namespace pipeline::docker {

/// The texts in the events of a build.
struct BuildReport {
  std::string image, step, reason;
};

/// Emits BuildStarted, awaits `build`, and emits BuildFinished with the id that `build` returns or
/// the EnvironmentError that it throws. Rethrows the error.
/// @param cancel passed to `build`; a cancelled build has not failed
async::Task<std::string> reported(async::Task<std::string> build, BuildReport report,
                                  EventSink& events, core::CancelSource& cancel);

}  // namespace pipeline::docker

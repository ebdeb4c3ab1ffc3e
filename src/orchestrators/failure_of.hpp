/// @file
/// Converts exceptions to failures of steps.
#pragma once

#include <pipeline/events.hpp>

#include "core/error.hpp"

namespace pipeline::orchestrators {

/// Returns the failure of a step that cannot run because something outside of it has failed: of
/// kind build for a BuildError, else of kind environment.
inline Failure failure_of(const core::EnvironmentError& error) {
  if (const auto* build = dynamic_cast<const core::BuildError*>(&error))
    return {FailureKind::build, build->what(), build->advice(), build->details()};
  return {FailureKind::environment, error.what(), error.advice(), {}};
}

}  // namespace pipeline::orchestrators

/// @file
/// The failures of stopped attempts, in the same words for all orchestrators.
#pragma once

#include <pipeline/events.hpp>

namespace pipeline::orchestrators {

/// For a step that ended after SIGTERM.
inline Failure was_stopped() { return {FailureKind::cancelled, "was stopped", {}, {}}; }

/// For a step that SIGKILL ended, because SIGTERM did not.
inline Failure had_to_be_killed() {
  return {FailureKind::cancelled,
          "did not stop when it was asked to (SIGTERM), and was killed",
          {"a step has 10 s to end; a C++ function asks StepContext::stopping()"},
          {}};
}

}  // namespace pipeline::orchestrators

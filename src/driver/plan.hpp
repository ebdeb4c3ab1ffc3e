/// @file
/// Plans a run without running anything.
#pragma once

#include <vector>

#include "driver/session.hpp"
#include "driver/step_warnings.hpp"
#include "engine/plan.hpp"

namespace pipeline::driver {

struct PipelinePlan {
  std::vector<engine::StepPlan> steps;
  std::vector<core::Diagnostic> warnings;
};

/// Throws the same errors as a run before its first step.
/// @param say receives each warning
/// @param with_keys whether the plans have the parts of the steps' keys
PipelinePlan plan_run(Session& session, const Say& say, bool with_keys);

}  // namespace pipeline::driver

/// @file
/// Settings that each are fine and together make no sense.
#pragma once

#include "settings/settings.hpp"

namespace pipeline::settings {

/// Among the settings of one place (a pipeline's or a step's). @param value what they were decoded
/// from, for the places
void check_contradictions(const Settings& settings, const core::Value& value,
                          Diagnostics& diagnostics);

/// Between a step's settings and the pipeline's that they are merged with: `skip_build` of the
/// pipeline and something to install of the step.
void check_against_pipeline(const Settings& pipeline, const Settings& step,
                            const core::Value& step_value, Diagnostics& diagnostics);

}  // namespace pipeline::settings

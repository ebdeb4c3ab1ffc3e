/// @file
/// Checks for settings that are valid alone, but contradict each other.
#pragma once

#include "settings/settings.hpp"

namespace pipeline::settings {

/// Checks the settings of one pipeline or one step.
/// @param value the value that the settings were decoded from, with positions
void check_contradictions(const Settings& settings, const core::Value& value,
                          Diagnostics& diagnostics);

/// Checks a step's settings against the pipeline's settings that are merged with them, such as a
/// pipeline's `skip_build` against a step's `requirements`.
void check_against_pipeline(const Settings& pipeline, const Settings& step,
                            const core::Value& step_value, Diagnostics& diagnostics);

}  // namespace pipeline::settings

/// @file
/// Checks the `retry` of a pipeline or a step.
#pragma once

#include <optional>

#include <pipeline/settings.hpp>

#include "settings/settings.hpp"

namespace pipeline::spec {

/// Reports keys that contradict each other, and keys that have no effect without other keys.
/// @param retry the pipeline's, or a step's after the merge with the pipeline's
/// @param written the value that `retry` was read from, for positions
/// @param step_settings the step's merged settings; null for the pipeline's `retry`
/// @param stalled_after the value of the pipeline or of the step
void check_retry(const RetrySettings& retry, const core::Value& written,
                 const Settings* step_settings, const std::optional<Duration>& stalled_after,
                 settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec

/// @file
/// Checks `retry` for keys that need others, of the pipeline or of a step.
#pragma once

#include <optional>

#include <pipeline/settings.hpp>

#include "settings/settings.hpp"

namespace pipeline::spec {

/// @param retry         with the pipeline's values, for a step
/// @param written       the value that `retry` was read from; it has the positions
/// @param asked         the step's merged settings; null for the pipeline's `retry`
/// @param stalled_after of the pipeline or of the step
void check_retry(const RetrySettings& retry, const core::Value& written, const Settings* asked,
                 const std::optional<Duration>& stalled_after, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec

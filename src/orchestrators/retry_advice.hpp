/// @file
/// Advice on failures that an attempt did not cause, in the same words for all orchestrators.
#pragma once

namespace pipeline::orchestrators {

/// Advice for a failure of kind infrastructure.
inline constexpr const char* retry_advice =
    "a step is retried as often as `retry.max_infrastructure_retries` says";

}  // namespace pipeline::orchestrators

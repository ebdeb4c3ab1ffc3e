/// @file
/// The metrics that say how good a run is: `headline: [evaluate.accuracy]`.
#pragma once

#include <string>
#include <vector>

#include "settings/decode.hpp"
#include "spec/read_step.hpp"

namespace pipeline::spec {

/// Returns the metrics, `STEP.METRIC` each. Reports a metric whose step does not exist, and more
/// metrics than model::max_headlines.
std::vector<std::string> read_headline(const core::Value& value, const std::vector<ReadStep>& steps,
                                       settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec

/// @file
/// The metrics that say how good a run is: `headline: [evaluate.accuracy]`.
#pragma once

#include <string>
#include <vector>

#include "settings/decode.hpp"
#include "spec/read_step.hpp"

namespace pipeline::spec {

/// Returns the metrics, `STEP.METRIC` each; reports a metric whose step does not exist.
std::vector<std::string> read_headline(const core::Value& value, const std::vector<ReadStep>& steps,
                                       settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec

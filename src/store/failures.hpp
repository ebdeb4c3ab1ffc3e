/// @file
/// The failures of recorded steps.
#pragma once

#include <vector>

#include "model/failure_groups.hpp"
#include "store/records.hpp"

namespace pipeline::store {

/// Returns the failures of the steps that failed, in the order in which the steps ended.
std::vector<model::StepFailure> failures_of(const std::vector<StepRecord>& steps);

}  // namespace pipeline::store

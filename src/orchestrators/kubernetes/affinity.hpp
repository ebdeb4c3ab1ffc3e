/// @file
/// Which nodes a step may run on, from what it says of its host: placement constraints, an instance type. Pure.
#pragma once

#include <vector>

#include "gpu/placement_terms.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline {

/// Terms of a node affinity, of which one has to hold; none: any node. Throws InputError for what a node affinity cannot express.
std::vector<gpu::NodeTerm> node_terms(const StepSpec& step);

}  // namespace pipeline

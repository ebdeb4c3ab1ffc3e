/// @file
/// Expands steps with a matrix into instances, and references to them (`train[*].model`).
#pragma once

#include <vector>

#include "spec/step_reader.hpp"

namespace pipeline::spec {

/// Returns the steps of the pipeline in the file's order, the instances of a matrix in its own
/// order. Reports references that do not fit a matrix.
/// @param specs the specs that `steps` refer to, in the same order; they may have been moved from
/// afterwards
std::vector<StepSpec> expand(std::vector<ReadStep>& steps, std::vector<StepSpec> specs,
                             settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec

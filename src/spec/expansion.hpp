/// @file
/// Steps with a matrix become many, and what others say of them (`train[*].model`) becomes plain
/// references.
#pragma once

#include <vector>

#include "spec/step_reader.hpp"

namespace pipeline::spec {

/// The steps of the pipeline, in the file's order, the instances of a matrix in its own; `steps`
/// are used up. Reports references that do not fit a matrix.
std::vector<StepSpec> expand(std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec

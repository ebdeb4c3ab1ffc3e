/// @file
/// Reads `matrix:`, which expands one step into many instances, each with its own values.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <pipeline/spec.hpp>

#include "core/value.hpp"
#include "settings/settings.hpp"

namespace pipeline::spec {

class MemoryBudget;
struct ReadStep;

/// A matrix with its values.
struct Matrix {
  std::vector<std::string> axes;
  std::vector<std::vector<Json>>
      instances;  ///< For each instance, its value on each axis; the last axis changes fastest.
};

/// A matrix with an axis whose values another step makes.
struct OpenMatrix {
  MatrixSpec spec;
  std::vector<core::Span> spans;  ///< Position of each axis.
};

/// Returns the names of the axes of the step's matrix; none if it has no matrix.
std::vector<std::string> axes_of(const ReadStep& step);

/// Reads the `matrix` of every step that has one: a map of axes to lists of values or to
/// `${STEP.OUTPUT[*]}`, with `include` and `exclude`, or the name of another step whose matrix is
/// used.
void read_matrices(std::vector<ReadStep>& steps, MemoryBudget& budget,
                   settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec

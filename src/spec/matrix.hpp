/// @file
/// Reads `matrix:`, which expands one step into many instances, each with its own values.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/value.hpp"
#include "settings/settings.hpp"

namespace pipeline::spec {

struct ReadStep;

struct Matrix {
  std::vector<std::string> axes;
  std::vector<std::vector<nlohmann::json>>
      instances;  ///< For each instance, its value on each axis; the last axis changes fastest.
};

/// Larger matrices are treated as a mistake.
constexpr std::size_t most_instances = 100'000;

/// Reads the `matrix` of every step that has one: a map of axes to lists of values, with `include`
/// and `exclude`, or the name of another step whose matrix is used.
void read_matrices(std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec

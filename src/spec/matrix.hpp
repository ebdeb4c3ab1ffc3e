/// @file
/// `matrix:`, which makes many steps of one: the values that each of them gets.
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
      instances;  ///< For each its value on each axis; the last axis changes fastest.
};

/// More are a mistake, not a pipeline.
constexpr std::size_t most_instances = 100'000;

/// Reads the `matrix` of every step that has one: a map of axes to lists of values, with `include`
/// and `exclude`, or the name of a step whose matrix it has too.
void read_matrices(std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec

/// @file
/// Runs beside each other: parameters, metrics, code, environments, time and usage.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "store/run_store.hpp"

namespace pipeline::report {

/// A value that the runs may differ in; null for a run without the value.
struct ComparedRow {
  std::string group, name;
  std::vector<nlohmann::json> values;
  bool is_result = false;  ///< A metric that says how good a run is (headline.hpp).
  /// For a value of a matrix's instance: the name for the values of all instances, `train[*].loss`.
  std::string of_matrix = {};
  bool differs() const {
    return std::ranges::any_of(values,
                               [&](const nlohmann::json& value) { return value != values[0]; });
  }
};

/// Returns a row for each value that a run has; those that differ come first, and of these the
/// results.
std::vector<ComparedRow> compared(store::RunStore& store,
                                  const std::vector<store::RunRecord>& records);

/// Returns the rows, with a single row for the values that the instances of a matrix have under one
/// name. The row has the range of a metric; of other values it has the value that all instances
/// share, or the number of different values.
std::vector<ComparedRow> without_instances(const std::vector<ComparedRow>& rows);

}  // namespace pipeline::report

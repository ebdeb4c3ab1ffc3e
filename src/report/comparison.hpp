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
  bool differs() const {
    return std::ranges::any_of(values,
                               [&](const nlohmann::json& value) { return value != values[0]; });
  }
};

/// Returns a row for each value that a run has; those that differ come first, and of these the
/// results.
std::vector<ComparedRow> compared(store::RunStore& store,
                                  const std::vector<store::RunRecord>& records);

}  // namespace pipeline::report

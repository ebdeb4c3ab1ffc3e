/// @file
/// Curves of metrics, thinned for a drawing.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "store/run_store.hpp"

namespace pipeline::report {

/// The part of a curve that a drawing shows.
struct CurveRange {
  std::int64_t from = std::numeric_limits<std::int64_t>::min();
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
  bool is_time = false;  ///< `from` and `to` are milliseconds since the first value, not steps.
};

/// Bounds of the curves of a page.
struct CurveLimits {
  std::size_t points = 200;         ///< Maximum number of points of a curve.
  std::size_t all_points = 60'000;  ///< Maximum of all curves together; each may have 20 anyway.
};

/// Adds `curve` to the entry: `[training step, value, milliseconds since the first value]` of each
/// point, and `restarts`, which has the training step at which each further attempt began. A longer
/// series is cut in parts, of which the minimum and maximum stay, and the first and last value.
/// @param max_points at least 4
void add_curve(std::span<const store::MetricPoint> points, const CurveRange& range,
               std::size_t max_points, nlohmann::json& entry);

/// Returns how many points each of so many curves has.
std::size_t points_of_each(std::size_t curves, const CurveLimits& limits);

/// Returns the curves of a metric in the runs: `run`, `step`, the step's parameters `p`, `last`,
/// `points`, `curve` and `restarts` of each.
nlohmann::json curves_of(store::RunStore& store, const std::vector<store::RunRecord>& runs,
                         const std::string& name, const CurveRange& range,
                         const CurveLimits& limits);

}  // namespace pipeline::report

/// @file
/// Metrics that steps report: series of numbers, stored in blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <pipeline/events.hpp>

namespace pipeline::store {

/// A value of a metric; may be infinite or not a number.
struct MetricPoint {
  double value = 0;
  std::optional<std::int64_t> step;  ///< The training's step or epoch, if the step reported one.
  WallTime time{};                   ///< When the value was reported.
  unsigned attempt = 0;              ///< The attempt that reported it; set by Metrics::points().
};

/// A metric of a step: the points of its last attempt. If that attempt continued from a checkpoint,
/// the points come first that earlier attempts reported for lower training steps.
struct MetricRecord {
  std::string run;  ///< The run that made the values; another one for a reused step.
  std::string step, name;
  /// The last attempt that reported the metric; for Metrics::add_points(), the attempt that reports
  /// the points. 0: the values come from an output with `metrics: true`.
  unsigned attempt = 0;
  std::uint64_t points = 0;  ///< Number of points that Metrics::points() returns.
  MetricPoint last;
};

class Database;

class Metrics {
 public:
  explicit Metrics(Database& database) : database_(database) {}

  /// Appends points to the series that one attempt reports; the series has `first` points already.
  /// @param metric names the run, the step, the attempt and the metric; the rest is not used
  void add_points(const MetricRecord& metric, std::uint64_t first,
                  std::span<const MetricPoint> points);
  /// Removes all metrics of an attempt, which will report them again.
  void remove(const std::string& run, const std::string& step, unsigned attempt);
  /// Returns the metrics of a run's steps, in the order of the steps; those of reused steps are
  /// those of the run that made them.
  /// @param step only this step; empty: all
  std::vector<MetricRecord> list(const std::string& run, const std::string& step = {});
  /// Returns all points of a metric, in the order in which they were reported. The points of an
  /// attempt end before the training step at which the next attempt began.
  std::vector<MetricPoint> points(const MetricRecord& metric);

 private:
  Database& database_;
};

/// Returns a value as JSON: a number, or "nan", "inf" or "-inf" for a value that JSON lacks.
nlohmann::json number_json(double value);

/// Serialises points as 24 bytes each: step, time, value; little-endian.
std::string write_points(std::span<const MetricPoint> points);
/// Reads the result of write_points(). Throws EnvironmentError if the length does not fit.
std::vector<MetricPoint> read_points(std::string_view bytes);

}  // namespace pipeline::store

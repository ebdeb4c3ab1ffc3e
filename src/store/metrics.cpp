#include "store/metrics.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "store/database.hpp"

namespace pipeline::store {
namespace {

constexpr std::size_t point_size = 24;
constexpr auto no_step = std::numeric_limits<std::int64_t>::min();

static_assert(std::endian::native == std::endian::little);

std::int64_t integer_at(std::string_view bytes) {
  std::int64_t value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

MetricPoint point_at(std::string_view bytes) {
  MetricPoint point;
  if (const auto step = integer_at(bytes); step != no_step) point.step = step;
  point.time = WallTime(std::chrono::milliseconds(integer_at(bytes.substr(8))));
  point.value = std::bit_cast<double>(integer_at(bytes.substr(16)));
  return point;
}

}  // namespace

std::string write_points(std::span<const MetricPoint> points) {
  std::string bytes;
  bytes.reserve(points.size() * point_size);
  for (const auto& point : points)
    for (const std::int64_t value :
         {point.step.value_or(no_step), std::int64_t{point.time.time_since_epoch().count()},
          std::bit_cast<std::int64_t>(point.value)})
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

std::vector<MetricPoint> read_points(std::string_view bytes) {
  if (bytes.size() % point_size != 0)
    throw core::EnvironmentError("the run store is damaged: a metric's points cannot be read");
  std::vector<MetricPoint> points;
  points.reserve(bytes.size() / point_size);
  for (; !bytes.empty(); bytes.remove_prefix(point_size)) points.push_back(point_at(bytes));
  return points;
}

nlohmann::json number_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

void Metrics::add_points(const MetricRecord& metric, std::uint64_t first,
                         std::span<const MetricPoint> points) {
  if (points.empty()) return;
  const auto bytes = write_points(points);
  database_
      .prepare(
          "INSERT OR REPLACE INTO metrics (run, step, attempt, name, first, count, last, points) "
          "VALUES (?1, ?2, ?3, ?4, ?5, ?6, CAST(?7 AS BLOB), CAST(?8 AS BLOB))")
      .bind(metric.run, metric.step, metric.attempt, metric.name, first, points.size(),
            std::string_view(bytes).substr(bytes.size() - point_size), bytes)
      .run();
}

void Metrics::remove(const std::string& run, const std::string& step, unsigned attempt) {
  database_.prepare("DELETE FROM metrics WHERE run = ?1 AND step = ?2 AND attempt = ?3")
      .bind(run, step, attempt)
      .run();
}

namespace {

/// The last attempt's metrics of each step, by name.
using StepMetrics = std::map<std::string, std::map<std::string, MetricRecord>>;

/// @param step the step whose metrics are read; empty: all steps
/// @param continued receives the metrics that several attempts have reported
StepMetrics read_metrics(Database& database, const std::string& run, const std::string& step,
                         std::vector<MetricRecord*>& continued) {
  // With max(), SQLite takes the other columns from the row that has the maximum.
#define SELECT_METRICS(of_step)                                                                   \
  "SELECT name, attempt, max(first), sum(count), last, step FROM metrics WHERE run = ?1 " of_step \
  "GROUP BY step, attempt, name ORDER BY step, attempt, name"
  auto row = database.prepare(step.empty() ? SELECT_METRICS("") : SELECT_METRICS("AND step = ?2 "));
  if (step.empty())
    row.bind(run);
  else
    row.bind(run, step);
  StepMetrics found;
  while (row.step()) {  // A later attempt replaces an earlier one.
    const auto last = read_points(row.text(4));
    if (last.empty()) continue;
    const auto name = row.text(0), owner = row.text(5);
    auto& metric = found[owner][name];
    const bool has_earlier = !metric.run.empty();
    metric = {run,
              owner,
              name,
              static_cast<unsigned>(row.integer(1)),
              static_cast<std::uint64_t>(row.integer(3)),
              last.back()};
    if (has_earlier) continued.push_back(&metric);
  }
  return found;
}

}  // namespace

std::vector<MetricRecord> Metrics::list(const std::string& run, const std::string& step) {
  // Rows of a step, its run, and the run that made its outputs. A run that reused all its steps has
  // no rows; those of the run `same_as` are used.
  auto row = database_.prepare(
      "SELECT name, run, CASE reused_from WHEN '' THEN run ELSE reused_from END FROM steps WHERE "
      "run = coalesce((SELECT nullif(same_as, '') FROM runs WHERE id = ?1), ?1) ORDER BY id");
  row.bind(run);
  std::vector<MetricRecord> found;
  std::map<std::string, StepMetrics> by_run;  // Steps can be reused from several runs.
  const auto append = [&](const std::string& from, const std::string& name) {
    const auto [run_metrics, is_new] = by_run.try_emplace(from);
    if (is_new) {
      std::vector<MetricRecord*> continued;
      run_metrics->second = read_metrics(database_, from, step, continued);
      for (auto* metric : continued) metric->points = points(*metric).size();
    }
    const auto step_metrics = run_metrics->second.find(name);
    if (step_metrics == run_metrics->second.end()) return false;
    for (const auto& [metric_name, metric] : step_metrics->second) found.push_back(metric);
    return true;
  };
  while (row.step()) {
    const auto name = row.text(0);
    if (!step.empty() && name != step) continue;
    // The metrics of a run that was removed are those of the first run that reused the step.
    if (!append(row.text(2), name)) append(row.text(1), name);
  }
  return found;
}

std::vector<MetricPoint> Metrics::points(const MetricRecord& metric) {
  auto row = database_.prepare(
      "SELECT points, attempt FROM metrics WHERE run = ?1 AND step = ?2 AND attempt <= ?3 AND name "
      "= ?4 ORDER BY attempt, first");
  row.bind(metric.run, metric.step, metric.attempt, metric.name);
  std::vector<MetricPoint> points;
  unsigned attempt = 0;
  while (row.step()) {
    auto block = read_points(row.text(0));
    if (block.empty()) continue;
    const auto number = static_cast<unsigned>(row.integer(1));
    for (auto& point : block) point.attempt = number;
    // A later attempt replaces the points from its first step on; without steps, all of them.
    if (std::exchange(attempt, number) != number) {
      const auto begin = block.front().step;
      std::erase_if(points, [&](const MetricPoint& point) {
        return !begin || !point.step || *point.step >= *begin;
      });
    }
    points.insert(points.end(), block.begin(), block.end());
  }
  return points;
}

}  // namespace pipeline::store

#include "report/curves.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/bounded_json.hpp"

namespace pipeline::report {
namespace {

using nlohmann::json;

constexpr std::size_t max_curves = 3000, min_points = 20;

std::int64_t step_of(std::span<const store::MetricPoint> points, std::size_t i) {
  return points[i].step.value_or(static_cast<std::int64_t>(i));
}

std::int64_t time_of(std::span<const store::MetricPoint> points, std::size_t i) {
  return (points[i].time - points[0].time).count();
}

/// Returns the position of the first point to draw, and the position after the last. The points are
/// those in the range and a neighbour on each side, so that lines lead to the drawing's edges.
std::pair<std::size_t, std::size_t> positions_in(std::span<const store::MetricPoint> points,
                                                 const CurveRange& range) {
  std::size_t first = points.size(), end = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto at = range.is_time ? time_of(points, i) : step_of(points, i);
    if (at < range.from || at > range.to) continue;
    first = std::min(first, i);
    end = i + 1;
  }
  if (first >= end) return {0, 0};
  return {first == 0 ? 0 : first - 1, std::min(end + 1, points.size())};
}

/// Returns the parameters of the run, and those of the step in their place.
json parameters_of(const store::RunRecord& run, const std::string& of_step) {
  auto all = core::parse_json(run.parameters), own = core::parse_json(of_step);
  if (!all.is_object()) all = json::object();
  if (own.is_object()) all.update(own);
  return all;
}

}  // namespace

void add_curve(std::span<const store::MetricPoint> points, const CurveRange& range,
               std::size_t max_points, json& entry) {
  auto& curve = entry["curve"] = json::array();
  for (std::size_t i = 1; i < points.size(); ++i)
    if (points[i].attempt != points[i - 1].attempt)
      entry["restarts"].push_back({step_of(points, i), points[i].attempt});
  const auto add = [&](std::size_t i) {
    curve.push_back({step_of(points, i), store::number_json(points[i].value), time_of(points, i)});
  };
  const auto [first, end] = positions_in(points, range);
  const auto count = end - first;
  if (count <= max_points) {
    for (auto i = first; i < end; ++i) add(i);
    return;
  }
  add(first);
  const auto parts = std::max<std::size_t>(1, (max_points - 2) / 2), inner = count - 2;
  for (std::size_t part = 0; part < parts; ++part) {
    const auto from = first + 1 + part * inner / parts, to = first + 1 + (part + 1) * inner / parts;
    auto low = from, high = from;
    for (auto i = from; i < to; ++i) {
      if (!(points[i].value >= points[low].value)) low = i;
      if (points[i].value > points[high].value) high = i;
    }
    add(std::min(low, high));
    if (low != high) add(std::max(low, high));
  }
  add(end - 1);
}

std::size_t points_of_each(std::size_t curves, const CurveLimits& limits) {
  const auto share = limits.all_points / std::max<std::size_t>(1, curves);
  return std::max(min_points, std::min(limits.points, share));
}

json curves_of(store::RunStore& store, const std::vector<store::RunRecord>& runs,
               const std::string& name, const CurveRange& range, const CurveLimits& limits) {
  std::vector<std::pair<const store::RunRecord*, store::MetricRecord>> metrics;
  std::map<std::pair<std::string, std::string>, std::string> parameters;
  for (const auto& run : runs) {
    for (auto& metric : store.metrics().list(run.id))
      if (metric.name == name && metric.points > 1 && metrics.size() < max_curves)
        metrics.emplace_back(&run, std::move(metric));
    for (auto& step : store.runs().steps(run.id))
      parameters[{run.id, step.name}] = std::move(step.parameters);
  }
  const auto each = points_of_each(metrics.size(), limits);
  auto list = json::array();
  for (const auto& [run, metric] : metrics) {
    json entry{{"run", run->id},
               {"step", metric.step},
               {"last", store::number_json(metric.last.value)},
               {"points", metric.points}};
    entry["p"] = parameters_of(*run, parameters[{run->id, metric.step}]);
    add_curve(store.metrics().points(metric), range, each, entry);
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace pipeline::report

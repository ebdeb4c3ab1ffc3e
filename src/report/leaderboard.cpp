#include "report/leaderboard.hpp"

#include <map>
#include <set>

#include "core/bounded_json.hpp"
#include "model/instance.hpp"
#include "report/headline.hpp"
#include "report/run_filter.hpp"
#include "report/run_values.hpp"

namespace pipeline::report {
namespace {

using nlohmann::json;

/// Returns the values that a table has room for.
json short_values(const auto& values) {
  constexpr std::size_t max_length = 200;
  auto kept = json::object();
  for (const auto& [name, value] : values)
    if (value.dump(-1, ' ', false, json::error_handler_t::replace).size() <= max_length)
      kept[name] = value;
  return kept;
}

/// Returns the document with the rows, and the names of metrics of which less is better.
json document_of(json rows) {
  std::set<std::string> low;
  for (const auto& row : rows)
    for (const auto& [name, value] : row["m"].items())
      if (is_better_lower(name)) low.insert(name);
  return {{"rows", std::move(rows)}, {"low", low}};
}

/// Returns the members of metrics that are named after a metric alone, not after its step as well.
json metrics_of(RunValues& values, const std::vector<store::MetricRecord>& metrics) {
  auto object = json::object();
  for (const auto& metric : metrics) object[metric.name] = values.value("metrics." + metric.name);
  return object;
}

}  // namespace

json leaderboard_of_steps(store::RunStore& store, const std::vector<store::RunRecord>& runs,
                          const std::string& where) {
  RunFilter filter(where);
  auto rows = json::array(), parameters = json::object();
  for (const auto& run : runs) {
    auto record = run;
    record.parameters.clear();
    auto own = core::parse_json(run.parameters);
    if (!own.is_object()) own = json::object();
    parameters[run.id] = short_values(own.items());
    std::map<std::string, std::vector<store::MetricRecord>> metrics;
    std::set<std::string, std::less<>> bases;
    for (auto& metric : store.metrics().list(run.id)) {
      bases.emplace(model::base_name(metric.step));
      auto& of_step = metrics[metric.step];
      of_step.push_back(std::move(metric));
    }
    for (const auto& step : store.runs().steps(run.id)) {
      const auto base = model::base_name(step.name);
      // Instances that failed before they reported anything have rows beside the others.
      const bool is_failed_instance = step.status == StepStatus::failed && base != step.name;
      if (!metrics.contains(step.name) && !(is_failed_instance && bases.contains(base))) continue;
      const auto& reported = metrics[step.name];
      RunValues values(store, record, own, step, reported);
      if (!filter.accepts(values)) continue;
      rows.push_back({{"run", run.id},
                      {"step", step.name},
                      {"b", base},
                      {"s", to_string(step.status)},
                      {"p", values.parameters()},
                      {"m", metrics_of(values, reported)}});
    }
  }
  filter.check();
  auto document = document_of(std::move(rows));
  document["parameters"] = std::move(parameters);
  return document;
}

json leaderboard_of_runs(store::RunStore& store, const std::string& pipeline,
                         const std::string& where, std::size_t max_rows) {
  RunFilter filter(where);
  auto rows = json::array();
  for (const auto& run : store.runs().list(0, pipeline)) {
    if (rows.size() == max_rows) break;
    RunValues values(store, run);
    if (!filter.accepts(values)) continue;
    rows.push_back({{"run", run.id},
                    {"b", run.pipeline},
                    {"s", to_string(run.status)},
                    {"p", short_values(values.parameters())},
                    {"m", metrics_of(values, store.metrics().list(run.id))}});
  }
  filter.check();
  return document_of(std::move(rows));
}

}  // namespace pipeline::report

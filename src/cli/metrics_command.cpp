// `pipe metrics`: the metrics that a run's steps have reported.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/run_records.hpp"
#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/quantity.hpp"
#include "driver/recorded_steps.hpp"
#include "driver/session.hpp"
#include "model/instance.hpp"
#include "report/headline.hpp"
#include "report/run_values.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

/// Draws a series as at most `width` bars, each for the mean of a part of the series. Returns an
/// empty text for fewer than two finite values.
std::string sparkline(const std::vector<store::MetricPoint>& points, std::size_t width) {
  static constexpr const char* bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::size_t last_bar = std::size(bars) - 1;
  std::vector<double> finite;
  for (const auto& point : points)
    if (std::isfinite(point.value)) finite.push_back(point.value);
  if (finite.size() < 2) return {};
  const auto parts = std::min(width, finite.size());
  std::vector<double> means;
  for (std::size_t i = 0; i < parts; ++i) {
    const auto from = i * finite.size() / parts, to = (i + 1) * finite.size() / parts;
    double sum = 0;
    for (auto at = from; at < to; ++at) sum += finite[at] / static_cast<double>(to - from);
    means.push_back(sum);
  }
  const auto [low, high] = std::ranges::minmax(means);
  std::string text;
  for (const auto mean : means) {
    const double height = high > low ? (mean - low) / (high - low) : 0.5;
    text += bars[static_cast<std::size_t>(std::lround(height * last_bar))];
  }
  return text;
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
};

Range range_of(const std::vector<store::MetricPoint>& points) {
  Range range;
  for (const auto& point : points) {
    if (std::isnan(point.value)) continue;
    range.low = std::min(range.low, point.value);
    range.high = std::max(range.high, point.value);
  }
  return range;
}

/// Returns a row for each metric, of steps without a matrix.
/// @param draws whether to draw the series
Table series_table(store::RunStore& store, const std::vector<store::MetricRecord>& metrics,
                   bool draws) {
  constexpr std::size_t drawn = 24;
  Table table;
  table.add({"STEP", "METRIC", "LAST", "AT", "VALUES", "MIN", "MAX", ""});
  for (const auto& metric : metrics) {
    const auto points = metric.points > 1 ? store.metrics().points(metric)
                                          : std::vector<store::MetricPoint>{metric.last};
    const auto range = range_of(points);
    const bool is_series = points.size() > 1 && range.low <= range.high;
    table.add({metric.step, for_terminal(metric.name),
               report::shown_value(store::number_json(metric.last.value)),
               metric.last.step ? std::to_string(*metric.last.step) : "",
               std::to_string(points.size()),
               is_series ? report::shown_value(store::number_json(range.low)) : "",
               is_series ? report::shown_value(store::number_json(range.high)) : "",
               draws ? sparkline(points, drawn) : ""});
  }
  return table;
}

/// The values of instances in columns of the same name.
using Columns = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// Adds a value in the row to the column with this name.
void set(Columns& columns, const std::string& name, std::size_t row, std::string value) {
  auto column = std::ranges::find(columns, name, &Columns::value_type::first);
  if (column == columns.end()) column = columns.insert(columns.end(), {name, {}});
  column->second.resize(std::max(column->second.size(), row + 1));
  column->second[row] = std::move(value);
}

/// Returns a row for each instance of a step with a matrix: its parameters, then its metrics.
/// Values that are equal in all rows are shown above the table instead.
std::string instances_text(const std::string& base, const std::vector<store::StepRecord>& steps,
                           const std::vector<store::MetricRecord>& metrics, const Paint& paint) {
  Columns columns;
  std::map<std::string, std::size_t> rows;  // Keyed by the instance's name.
  for (const auto& step : steps) {
    const auto has = [&](const auto& metric) { return metric.step == step.name; };
    if (std::ranges::none_of(metrics, has)) continue;
    const auto row = rows.emplace(step.name, rows.size()).first->second;
    const auto parameters = core::parse_json(step.parameters);
    if (!parameters.is_object()) continue;
    for (const auto& [name, value] : parameters.items())
      set(columns, name, row, report::shown_value(value));
  }
  const auto parameters = columns.size();
  for (const auto& metric : metrics)
    if (const auto row = rows.find(metric.step); row != rows.end())
      set(columns, metric.name, row->second,
          report::shown_value(store::number_json(metric.last.value)));
  std::string equal;
  std::vector<std::size_t> shown;
  bool has_parameter = false;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    auto& [name, values] = columns[i];
    values.resize(rows.size());
    const bool is_equal = rows.size() > 1 && std::ranges::count(values, values[0]) ==
                                                 static_cast<std::ptrdiff_t>(rows.size());
    if (!is_equal) shown.push_back(i);
    has_parameter |= !is_equal && i < parameters;
    if (is_equal) equal += (equal.empty() ? "" : ", ") + name + " = " + values[0];
  }
  std::string text = paint(Colour::bold, base + "[*]") + ", " + counted(rows.size(), "instance");
  if (!equal.empty()) text += "; in all: " + for_terminal(equal);
  Table table;
  std::vector<Table::Cell> heading;
  if (!has_parameter) heading.emplace_back("STEP");
  for (const auto i : shown) heading.emplace_back(for_terminal(columns[i].first));
  table.add(std::move(heading));
  for (const auto& step : steps) {
    const auto row = rows.find(step.name);
    if (row == rows.end()) continue;
    std::vector<Table::Cell> cells;
    if (!has_parameter) cells.emplace_back(step.name);
    for (const auto i : shown) cells.emplace_back(for_terminal(columns[i].second[row->second]));
    table.add(std::move(cells));
  }
  return text + "\n" + (shown.empty() ? "" : table.render(paint));
}

/// Returns a table of the run's most important metrics (report/headline.hpp).
Table results_table(const std::vector<report::Headline>& headlines) {
  Table table;
  table.add({"RESULT", "VALUE", ""});
  for (const auto& each : headlines) {
    const bool is_one = each.instances == 1;
    table.add({(is_one ? each.instance : each.step + "[*]") + "." + for_terminal(each.name),
               report::shown_value(each.value),
               is_one ? ""
                      : "best of " + std::to_string(each.instances) + ", by " + each.instance +
                            "; mean " + report::shown_value(each.mean)});
  }
  return table;
}

std::string tables(store::RunStore& store, const std::vector<store::StepRecord>& steps,
                   const std::vector<store::MetricRecord>& metrics, bool draws,
                   const Paint& paint) {
  std::vector<store::MetricRecord> single;
  std::map<std::string, std::vector<store::MetricRecord>> of_instances;
  for (const auto& metric : metrics) {
    const std::string base(model::base_name(metric.step));
    (base == metric.step ? single : of_instances[base]).push_back(metric);
  }
  std::string text;
  if (const auto table = series_table(store, single, draws); !table.empty())
    text += table.render(paint);
  for (const auto& [base, list] : of_instances)
    text += (text.empty() ? "" : "\n") + instances_text(base, steps, list, paint);
  return text;
}

std::string csv_text(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  return "\"" + core::replaced(std::string(text), "\"", "\"\"") + "\"";
}

std::string csv_number(double value) {
  const auto written = store::number_json(value);
  return written.is_string() ? written.get<std::string>() : written.dump();
}

void print_csv(Context& context, store::RunStore& store,
               const std::vector<store::MetricRecord>& metrics) {
  std::string text = "step,metric,training_step,time,value,attempt\n";
  const auto print = [&] { context.out().live ? context.print(text) : context.write(text); };
  constexpr std::size_t chunk = 1 << 20;
  for (const auto& metric : metrics)
    for (const auto& point : store.metrics().points(metric)) {
      text += csv_text(metric.step) + "," + csv_text(metric.name) + "," +
              (point.step ? std::to_string(*point.step) : "") + "," +
              core::format_time(point.time) + "," + csv_number(point.value) + "," +
              std::to_string(point.attempt) + "\n";
      if (text.size() <= chunk) continue;
      print();
      text.clear();
    }
  print();
}

json points_json(const std::vector<store::MetricPoint>& points) {
  auto list = json::array();
  for (const auto& point : points) {
    json entry{{"value", store::number_json(point.value)},
               {"time", core::format_time(point.time)},
               {"attempt", point.attempt}};
    if (point.step) entry["training_step"] = *point.step;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

core::ExitCode metrics_command(Context& context) {
  const auto& options = context.options();
  auto& store = context.existing_store();
  driver::Drivers drivers(context.driver_context(), store);
  const auto run = driver::find_run(context, context.options().run, drivers, store);
  const auto steps = options.step.empty() ? store.runs().steps(run.id)
                                          : driver::recorded_steps(store, run, options.step);
  if (!options.step.empty() && steps.empty())
    driver::recorded_step(store, run, options.step);  // Throws, with the likely names.
  std::vector<store::MetricRecord> metrics;
  for (auto& metric : store.metrics().list(run.id))
    if (std::ranges::any_of(steps, [&](const auto& step) { return step.name == metric.step; }))
      metrics.push_back(std::move(metric));
  if (options.json) {
    auto list = json::array();
    for (const auto& metric : metrics) {
      list.push_back(metric_json(metric));
      list.back()["series"] = points_json(store.metrics().points(metric));
    }
    context.print_json({{"run", run.id}, {"metrics", std::move(list)}});
  } else if (options.metrics.csv) {
    print_csv(context, store, metrics);
  } else if (metrics.empty()) {
    context.note("run " + run.id + " has no metrics: a step reports one by printing " +
                 "`@pipe {\"metric\": \"loss\", \"value\": 0.25}`");
  } else {
    const auto headlines =
        options.step.empty() ? report::headlines_of(store, run) : std::vector<report::Headline>();
    if (!headlines.empty()) context.print(results_table(headlines).render(context.paint()) + "\n");
    context.print(tables(store, steps, metrics, context.out().live, context.paint()));
  }
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli

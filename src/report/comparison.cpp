#include "report/comparison.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/digest.hpp"
#include "model/instance.hpp"
#include "report/headline.hpp"
#include "report/run_values.hpp"

namespace pipeline::report {
namespace {

using nlohmann::json;

/// The groups of compared values, in the order in which they are shown.
constexpr const char* compared_groups[] = {"parameter", "metric",      "run", "usage",
                                           "code",      "environment", "key"};

/// Returns the rows, those that differ first, and of these the results.
std::vector<ComparedRow> in_order(std::vector<ComparedRow> rows) {
  std::ranges::stable_partition(rows, &ComparedRow::is_result);
  std::ranges::stable_partition(rows, [](const ComparedRow& row) { return row.differs(); });
  return rows;
}

class Comparison {
 public:
  explicit Comparison(store::RunStore& store) : store_(store) {}

  void add(const store::RunRecord& record) {
    RunValues values(store_, record);
    for (const auto& [name, value] : values.parameters()) set("parameter", name, value);
    add_metrics(record, values);
    for (const char* name :
         {"pipeline", "status", "orchestrator", "commit", "seconds", "failed", "reused"})
      set("run", name, values.value(name));
    for (const auto& [name, value] : values.usage()) set("usage", name, value);
    for (const auto& step : store_.runs().steps(record.id)) add_key(step);
    ++runs_added_;
  }

  /// Returns the rows, those that differ first.
  std::vector<ComparedRow> rows() {
    std::vector<ComparedRow> all;
    for (const auto* group : compared_groups)
      for (auto& [name, values] : rows_[group]) {
        values.resize(runs_added_);
        const auto matrix = matrices_.find(name);
        all.push_back({group, name, values,
                       results_.contains(name) && group == std::string_view("metric"),
                       matrix == matrices_.end() ? std::string() : matrix->second});
      }
    return in_order(std::move(all));
  }

 private:
  /// If the step is an instance of a matrix, records the name of its value for all instances.
  /// @param rest the value's name without the step
  void note_instance(const std::string& step, const std::string& rest) {
    const auto base = model::base_name(step);
    if (base != step) matrices_.emplace(step + rest, std::string(base) + "[*]" + rest);
  }

  void set(const std::string& group, const std::string& name, json value) {
    auto& values = rows_[group][name];
    values.resize(runs_added_ + 1);
    values[runs_added_] = std::move(value);
  }

  /// Adds `STEP.NAME` only, because a name alone repeats the value of one of these.
  void add_metrics(const store::RunRecord& run, RunValues& values) {
    const auto metrics = results_of(store_, run);
    const auto results = headline_steps(store_, run, metrics);
    for (const auto& metric : metrics) {
      const auto name = metric.step + "." + metric.name;
      if (std::ranges::find(results, model::base_name(metric.step)) != results.end())
        results_.insert(name);
      note_instance(metric.step, "." + metric.name);
      set("metric", name, values.value("metrics." + name));
    }
  }

  /// Adds the parts of a step's key that no other group shows: code by file, environment, the rest.
  void add_key(const store::StepRecord& step) {
    for (const auto& part : store_.cache().key_parts(step.key)) {
      if (part.name == "step" || part.name == "pipeline" || part.name.starts_with("parameter "))
        continue;
      constexpr std::size_t digest_digits = 64, shown_digits = 12;
      const auto text =
          part.value.size() == digest_digits ? part.value.substr(0, shown_digits) : part.value;
      const bool is_code = part.name.starts_with("code ");
      const auto rest = ": " + (is_code ? part.name.substr(5) : part.name);
      note_instance(step.name, rest);
      set(is_code ? "code" : part.name == "image" ? "environment" : "key", step.name + rest, text);
    }
  }

  store::RunStore& store_;
  std::size_t runs_added_ = 0;
  std::set<std::string> results_;
  std::map<std::string, std::string> matrices_;  ///< See ComparedRow::of_matrix.
  std::map<std::string, std::map<std::string, std::vector<json>>> rows_;
};

/// Returns `mean 0.91, 0.85 to 0.95`.
json range_of(const std::vector<json>& values) {
  std::vector<double> numbers;
  for (const auto& value : values)
    if (value.is_number()) numbers.push_back(value);
  if (numbers.empty()) return {};
  const auto [low, high] = std::ranges::minmax(numbers);
  const auto mean =
      std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
  return "mean " + shown_value(mean) + ", " + shown_value(low) + " to " + shown_value(high);
}

/// Returns the value that all instances have, or the number of different values and a digest of
/// all.
json summary_of(const std::vector<json>& values) {
  std::set<json> different;
  core::Hasher hasher;
  for (const auto& value : values) {
    hasher.field(value.dump(-1, ' ', false, json::error_handler_t::replace));
    if (!value.is_null()) different.insert(value);
  }
  if (different.empty()) return {};
  if (different.size() == 1) return *different.begin();
  return std::to_string(different.size()) + " values, " + hasher.finish().hex().substr(0, 12);
}

}  // namespace

std::vector<ComparedRow> without_instances(const std::vector<ComparedRow>& rows) {
  std::vector<ComparedRow> all;
  std::map<std::string, std::size_t> positions;
  std::map<std::size_t, std::vector<std::vector<json>>>
      instances;  // Keyed by position in `all`, then by run.
  for (const auto& row : rows) {
    if (row.of_matrix.empty()) {
      all.push_back(row);
      continue;
    }
    const auto [known, is_new] = positions.try_emplace(row.group + " " + row.of_matrix, all.size());
    if (is_new) all.push_back({row.group, row.of_matrix, {}, row.is_result});
    auto& of_runs = instances[known->second];
    of_runs.resize(row.values.size());
    for (std::size_t i = 0; i < row.values.size(); ++i) of_runs[i].push_back(row.values[i]);
  }
  for (const auto& [position, of_runs] : instances)
    for (const auto& values : of_runs)
      all[position].values.push_back(all[position].group == "metric" ? range_of(values)
                                                                     : summary_of(values));
  return in_order(std::move(all));
}

std::vector<ComparedRow> compared(store::RunStore& store,
                                  const std::vector<store::RunRecord>& records) {
  Comparison comparison(store);
  for (const auto& record : records) comparison.add(record);
  return comparison.rows();
}

}  // namespace pipeline::report

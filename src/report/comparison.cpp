#include "report/comparison.hpp"

#include <map>
#include <set>

#include "model/instance.hpp"
#include "report/headline.hpp"
#include "report/run_values.hpp"

namespace pipeline::report {
namespace {

using nlohmann::json;

/// The groups of compared values, in the order in which they are shown.
constexpr const char* compared_groups[] = {"parameter", "metric",      "run", "usage",
                                           "code",      "environment", "key"};

class Comparison {
 public:
  explicit Comparison(store::RunStore& store) : store_(store) {}

  void add(const store::RunRecord& record) {
    RunValues values(store_, record);
    for (const auto& [name, value] : values.parameters()) set("parameter", name, value);
    add_metrics(record, values);
    for (const char* name : {"pipeline", "status", "orchestrator", "commit", "seconds"})
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
        all.push_back(
            {group, name, values, results_.contains(name) && group == std::string_view("metric")});
      }
    std::ranges::stable_partition(all, &ComparedRow::is_result);
    std::ranges::stable_partition(all, [](const ComparedRow& row) { return row.differs(); });
    return all;
  }

 private:
  void set(const std::string& group, const std::string& name, json value) {
    auto& values = rows_[group][name];
    values.resize(runs_added_ + 1);
    values[runs_added_] = std::move(value);
  }

  /// Adds `STEP.NAME` only, because a name alone repeats the value of one of these.
  void add_metrics(const store::RunRecord& run, RunValues& values) {
    const auto metrics = store_.metrics().list(run.id);
    const auto results = headline_steps(store_, run, metrics);
    for (const auto& metric : metrics) {
      const auto name = metric.step + "." + metric.name;
      if (std::ranges::find(results, model::base_name(metric.step)) != results.end())
        results_.insert(name);
      set("metric", name, values.value("metrics." + name));
    }
  }

  /// Adds the parts of a step's key of no other group: code by file, environment, the rest.
  void add_key(const store::StepRecord& step) {
    for (const auto& part : store_.cache().key_parts(step.key)) {
      if (part.name == "step" || part.name == "pipeline" || part.name.starts_with("parameter "))
        continue;
      const auto text = part.value.size() == 64 ? part.value.substr(0, 12) : part.value;
      if (part.name.starts_with("code "))
        set("code", step.name + ": " + part.name.substr(5), text);
      else
        set(part.name == "image" ? "environment" : "key", step.name + ": " + part.name, text);
    }
  }

  store::RunStore& store_;
  std::size_t runs_added_ = 0;
  std::set<std::string> results_;
  std::map<std::string, std::map<std::string, std::vector<json>>> rows_;
};

}  // namespace

std::vector<ComparedRow> compared(store::RunStore& store,
                                  const std::vector<store::RunRecord>& records) {
  Comparison comparison(store);
  for (const auto& record : records) comparison.add(record);
  return comparison.rows();
}

}  // namespace pipeline::report

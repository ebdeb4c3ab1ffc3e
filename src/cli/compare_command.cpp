#include <algorithm>
#include <map>
#include <set>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/run_values.hpp"
#include "cli/session.hpp"
#include "core/diagnostic.hpp"
#include "core/identifier.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

/// What is compared, in the order in which it is shown.
constexpr const char* groups[] = {"parameter", "metric", "code", "environment",
                                  "key",       "run",    "usage"};

/// One thing that the runs may differ in; a null is nothing.
struct Row {
  std::string group, name;
  std::vector<json> values;
  bool differs() const {
    return std::ranges::any_of(values, [&](const json& value) { return value != values[0]; });
  }
};

class Comparison {
 public:
  explicit Comparison(store::RunStore& runs) : runs_(runs) {}

  void add(const store::RunRecord& record) {
    RunValues values(runs_, record);
    for (const auto& [name, value] : values.parameters()) set("parameter", name, value);
    add_metrics(record.id, values);
    for (const char* name : {"pipeline", "status", "orchestrator", "commit", "seconds"})
      set("run", name, values.value(name));
    for (const auto& [name, value] : values.usage()) set("usage", name, value);
    for (const auto& step : runs_.steps(record.id)) add_key(step);
    ++runs_added_;
  }

  /// Returns the rows, those that differ first.
  std::vector<Row> rows() {
    std::vector<Row> all;
    for (const auto* group : groups)
      for (auto& [name, values] : rows_[group]) {
        values.resize(runs_added_);
        all.push_back({group, name, values});
      }
    std::ranges::stable_partition(all, [](const Row& row) { return row.differs(); });
    return all;
  }

 private:
  void set(const std::string& group, const std::string& name, json value) {
    auto& values = rows_[group][name];
    values.resize(runs_added_ + 1);
    values[runs_added_] = std::move(value);
  }

  /// Only `STEP.NAME`; a name alone is one of these.
  void add_metrics(const std::string& run, RunValues& values) {
    for (const auto& metric : runs_.metrics(run)) {
      const auto name = metric.step + "." + metric.name;
      set("metric", name, values.value("metrics." + name));
    }
  }

  /// The parts of a step's key: its code by file, its environment, and all others except those that
  /// stand elsewhere.
  void add_key(const store::StepRecord& step) {
    for (const auto& part : runs_.key_parts(step.key)) {
      if (part.name == "step" || part.name == "pipeline" || part.name.starts_with("parameter "))
        continue;
      const auto text = part.value.size() == 64 ? part.value.substr(0, 12) : part.value;
      if (part.name.starts_with("code "))
        set("code", step.name + ": " + part.name.substr(5), text);
      else
        set(part.name == "image" ? "environment" : "key", step.name + ": " + part.name, text);
    }
  }

  store::RunStore& runs_;
  std::size_t runs_added_ = 0;
  std::map<std::string, std::map<std::string, std::vector<json>>> rows_;
};

Table table_of(const std::vector<store::RunRecord>& runs, const std::vector<Row>& rows, bool all) {
  constexpr unsigned widest = 32;
  Table table;
  std::vector<Table::Cell> heading{"", ""};
  for (const auto& run : runs) heading.emplace_back(run.id);
  table.add(std::move(heading));
  std::string group;
  for (const auto& row : rows) {
    if (!row.differs() && !all) continue;
    const auto colour = row.differs() ? Colour::yellow : Colour::none;
    std::vector<Table::Cell> cells{row.group == group ? "" : row.group,
                                   {for_terminal(row.name, false), colour}};
    group = row.group;
    for (const auto& value : row.values)
      cells.emplace_back(clip(for_terminal(shown_value(value), false), widest));
    table.add(std::move(cells));
  }
  return table;
}

}  // namespace

core::ExitCode compare_command(Context& context) {
  const auto& options = context.options();
  auto& runs = context.existing_runs();
  std::vector<store::RunRecord> records;
  for (const auto& name : options.inspect.runs) {
    auto found = runs.find_run(name);
    if (!found) throw core::InputError("there is no run '" + name + "'", "`pipe runs` lists them");
    records.push_back(std::move(*found));
  }
  if (records.size() < 2)
    throw core::InputError("compare needs at least two runs", "`pipe runs` lists them");
  Comparison comparison(runs);
  for (const auto& record : records) comparison.add(record);
  const auto rows = comparison.rows();
  if (options.json) {
    auto list = json::array();
    for (const auto& row : rows)
      list.push_back({{"group", row.group},
                      {"name", row.name},
                      {"values", row.values},
                      {"differs", row.differs()}});
    auto names = json::array();
    for (const auto& record : records) names.push_back(record.id);
    context.print_json({{"runs", std::move(names)}, {"rows", std::move(list)}});
    return core::ExitCode::ok;
  }
  const auto equal = static_cast<std::size_t>(
      std::ranges::count_if(rows, [](const Row& row) { return !row.differs(); }));
  context.print(table_of(records, rows, options.inspect.all).render(context.paint()));
  if (equal > 0 && !options.inspect.all)
    context.note(counted(equal, "more value") + " equal in all: `--all` shows them");
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli

#include <algorithm>
#include <map>
#include <numeric>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/diagnostic.hpp"
#include "core/identifier.hpp"
#include "driver/session.hpp"
#include "model/instance.hpp"
#include "report/comparison.hpp"
#include "report/run_values.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

/// Returns `mean 0.91, 0.85 to 0.95`.
std::string range_text(const std::vector<double>& values) {
  const auto [low, high] = std::ranges::minmax(values);
  const auto mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return "mean " + report::shown_value(mean) + ", " + report::shown_value(low) + " to " +
         report::shown_value(high);
}

/// Returns the rows with one row for each metric of a matrix in place of those of its instances.
std::vector<report::ComparedRow> without_instances(const std::vector<report::ComparedRow>& rows) {
  std::vector<report::ComparedRow> all;
  std::map<std::string, std::size_t> places;
  std::vector<std::vector<std::vector<double>>> numbers;  // Of each of those rows, by run.
  for (const auto& row : rows) {
    const auto dot = row.name.rfind('.');
    const auto step = row.name.substr(0, dot);
    const auto base = model::base_name(step);
    if (row.group != "metric" || dot == row.name.npos || base == step) {
      all.push_back(row);
      continue;
    }
    const auto name = std::string(base) + "[*]" + row.name.substr(dot);
    const auto [place, is_new] = places.try_emplace(name, all.size());
    if (is_new) {
      all.push_back({row.group, name, {}, row.is_result});
      all.back().values.resize(row.values.size());
    }
    numbers.resize(std::max(numbers.size(), place->second + 1));
    auto& of_runs = numbers[place->second];
    of_runs.resize(row.values.size());
    for (std::size_t i = 0; i < row.values.size(); ++i)
      if (row.values[i].is_number()) of_runs[i].push_back(row.values[i]);
  }
  for (const auto& [name, place] : places)
    for (std::size_t i = 0; i < numbers[place].size(); ++i)
      if (const auto& values = numbers[place][i]; !values.empty())
        all[place].values[i] = range_text(values);
  return all;
}

Table table_of(const std::vector<store::RunRecord>& runs,
               const std::vector<report::ComparedRow>& rows, bool all) {
  constexpr unsigned widest = 32;
  Table table;
  std::vector<Table::Cell> heading{"", ""};
  for (const auto& run : runs) heading.emplace_back(run.id);
  table.add(std::move(heading));
  std::string group;
  for (const auto& row : rows) {
    if (!row.differs() && !all) continue;
    const auto colour = row.differs() ? Colour::yellow : Colour::none;
    const auto shown_group = row.is_result ? "result" : row.group;
    std::vector<Table::Cell> cells{shown_group == group ? "" : shown_group,
                                   {for_terminal(row.name, false), colour}};
    group = shown_group;
    for (const auto& value : row.values)
      cells.emplace_back(
          clip(shorten_digests(
                   for_terminal(report::shown_value_of(row.group + "." + row.name, value), false)),
               widest));
    table.add(std::move(cells));
  }
  return table;
}

}  // namespace

core::ExitCode compare_command(Context& context) {
  const auto& options = context.options();
  auto& store = context.existing_store();
  std::vector<store::RunRecord> records;
  for (const auto& name : options.compare.runs) {
    auto found = store.runs().find(name);
    if (!found) throw core::InputError("there is no run '" + name + "'", "`pipe runs` lists them");
    records.push_back(std::move(*found));
  }
  if (records.size() < 2)
    throw core::InputError("compare needs at least two runs", "`pipe runs` lists them");
  const auto rows = report::compared(store, records);
  if (options.json) {
    auto list = json::array();
    for (const auto& row : rows)
      list.push_back({{"group", row.group},
                      {"name", row.name},
                      {"values", row.values},
                      {"differs", row.differs()},
                      {"result", row.is_result}});
    auto names = json::array();
    for (const auto& record : records) names.push_back(record.id);
    context.print_json({{"runs", std::move(names)}, {"rows", std::move(list)}});
    return core::ExitCode::ok;
  }
  const auto equal = static_cast<std::size_t>(
      std::ranges::count_if(rows, [](const report::ComparedRow& row) { return !row.differs(); }));
  const auto shown = options.compare.all ? rows : without_instances(rows);
  context.print(table_of(records, shown, options.compare.all).render(context.paint()));
  if (equal > 0 && !options.compare.all)
    context.note(counted(equal, "more value") + " equal in all: `--all` shows them");
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli

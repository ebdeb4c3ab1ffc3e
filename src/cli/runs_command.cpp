// `pipe runs`: lists runs, with values of the user's choice.
#include <algorithm>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/run_records.hpp"
#include "cli/summary.hpp"
#include "report/run_table.hpp"

namespace pipeline::cli {

using nlohmann::json;

namespace {

/// Returns `ACCURACY` for `metrics.accuracy`.
std::string heading_of(const std::string& column) {
  auto text = column.substr(column.find('.') + 1);
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  });
  return text;
}

json runs_json(driver::Drivers& drivers, std::vector<report::ListedRun>& list,
               const std::vector<std::string>& columns) {
  json entries = json::array();
  for (auto& run : list) {
    const auto status = status_of(drivers, run.record);
    entries.push_back(run_json(run.record));
    entries.back()["status"] = status;
    for (std::size_t i = 0; i < run.values.size(); ++i)
      entries.back()["values"][columns[i]] = run.values[i];
  }
  return entries;
}

Table runs_table(driver::Drivers& drivers, std::vector<report::ListedRun>& list,
                 const std::vector<std::string>& columns) {
  const bool has_tags =
      std::ranges::any_of(list, [](const auto& run) { return !run.record.tags.empty(); });
  Table table;
  std::vector<Table::Cell> heading{"RUN",  "PIPELINE", "STATUS", "STARTED",
                                   "TIME", "STEPS",    "REUSED", "FAILED"};
  for (const auto& column : columns) heading.emplace_back(heading_of(column));
  heading.emplace_back(has_tags ? "TAGS" : "");
  table.add(std::move(heading));
  for (auto& [run, values, sort_by] : list) {
    const auto status = status_of(drivers, run);
    // The end of a run whose driver was killed is not known.
    const bool has_time = status == "running" || run.ended != WallTime{};
    std::vector<Table::Cell> row{run.id,
                                 run.pipeline,
                                 {status, colour_of(run.status)},
                                 core::format_time(run.started),
                                 has_time ? duration_of(run) : "",
                                 std::to_string(run.steps),
                                 std::to_string(run.cached),
                                 std::to_string(run.failed)};
    for (std::size_t i = 0; i < values.size(); ++i)
      row.emplace_back(for_terminal(report::shown_value_of(columns[i], values[i])));
    row.emplace_back(report::tags_of(run));
    table.add(std::move(row));
  }
  return table;
}

}  // namespace

core::ExitCode runs_command(Context& context) {
  const auto& options = context.options();
  const auto state = context.existing_state();
  if (!state && !options.state.empty()) context.required_state();
  std::vector<report::ListedRun> list;
  std::optional<driver::Drivers> drivers;
  if (state) {
    auto& store = context.store(*state);
    const auto& given = options.runs;
    const report::RunQuery query{.pipeline = given.pipeline,
                                 .tag = given.tag,
                                 .where = given.where,
                                 .sort = given.sort,
                                 .columns = given.columns};
    list = report::RunTable(store).find(query, given.limit);
    drivers.emplace(context.driver_context(), store);
    for (auto& run : list) drivers->update(run.record);
  }
  if (options.json) {
    context.print_json(
        {{"runs", list.empty() ? json::array() : runs_json(*drivers, list, options.runs.columns)}});
  } else if (list.empty()) {
    context.note(state && context.store(*state).runs().find("latest")
                     ? "no run matches the filter: `" + options.name + " runs` lists them all"
                     : "no run has been made yet");
  } else {
    context.print(runs_table(*drivers, list, options.runs.columns).render(context.paint()));
  }
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli

// `pipe compare`: a table of the differences between runs.
#include <algorithm>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/diagnostic.hpp"
#include "driver/session.hpp"
#include "report/comparison.hpp"
#include "report/run_values.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

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
                                   {for_terminal(row.name), colour}};
    group = shown_group;
    for (const auto& value : row.values)
      cells.emplace_back(clip(
          shorten_digests(for_terminal(report::shown_value_of(row.group + "." + row.name, value))),
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
  const auto shown = options.compare.all ? rows : report::without_instances(rows);
  context.print(table_of(records, shown, options.compare.all).render(context.paint()));
  if (equal > 0 && !options.compare.all)
    context.note(counted(equal, "value") + (equal == 1 ? " is" : " are") +
                 " equal in all runs: `--all` shows " + (equal == 1 ? "it" : "them"));
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli

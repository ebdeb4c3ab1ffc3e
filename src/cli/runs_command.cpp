#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/progress.hpp"
#include "cli/run_records.hpp"
#include "cli/summary.hpp"
#include "core/identifier.hpp"
#include "core/quantity.hpp"

namespace pipeline::cli {

using nlohmann::json;

core::ExitCode runs_command(Context& context) {
  const auto& options = context.options();
  const auto state = context.existing_state();
  if (!state && !options.state.empty()) context.required_state();
  std::vector<store::RunRecord> list;
  std::optional<detached::Drivers> drivers;
  if (state) {
    auto& runs = context.runs(*state);
    list = runs.runs(options.inspect.limit, options.inspect.pipeline, options.inspect.tag);
    drivers.emplace(context.driver_context(), runs);
    for (auto& run : list) drivers->update(run);
  }
  if (options.json) {
    json entries = json::array();
    for (const auto& run : list) entries.push_back(run_json(run));
    context.print_json({{"runs", entries}});
    return core::ExitCode::ok;
  }
  if (list.empty()) context.note("no run has been made yet");
  const bool has_tags =
      std::ranges::any_of(list, [](const auto& run) { return !run.tags.empty(); });
  Table table;
  table.add({"RUN", "PIPELINE", "STATUS", "STARTED", "TIME", "STEPS", "REUSED", "FAILED",
             has_tags ? "TAGS" : ""});
  for (auto& run : list)
    table.add({run.id,
               run.pipeline,
               {status_of(*drivers, run), colour_of(run.status)},
               core::format_time(run.started),
               run.status == RunStatus::running ? "" : core::format_duration(run.took),
               std::to_string(run.steps),
               std::to_string(run.cached),
               std::to_string(run.failed),
               tags_of(run)});
  if (!table.empty()) context.print(table.render(context.paint()));
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli

// `pipe advise`: compares the resources that steps ask for with those that they have used.
#include <algorithm>
#include <cmath>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/joined.hpp"
#include "core/quantity.hpp"
#include "driver/advice.hpp"
#include "driver/pipeline_source.hpp"
#include "report/run_values.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

json json_of(const driver::AdvisedStep& step) {
  json entry{{"step", step.name}, {"runs", step.used.runs}, {"advice", json::array()}};
  if (step.asked.memory) entry["asked"]["memory"] = *step.asked.memory;
  if (step.asked.cpu_count) entry["asked"]["cpu_count"] = *step.asked.cpu_count;
  if (step.asked.gpu_count) entry["asked"]["gpu_count"] = *step.asked.gpu_count;
  if (step.used.gpus) entry["used"]["gpus"] = *step.used.gpus;
  if (step.used.memory) entry["used"]["memory"] = *step.used.memory;
  if (step.used.cpus) entry["used"]["cpus"] = *step.used.cpus;
  for (const auto& [setting, value, reason] : step.advice)
    entry["advice"].push_back({{"setting", setting}, {"value", value}, {"reason", reason}});
  return entry;
}

Table table_of(const std::vector<driver::AdvisedStep>& steps) {
  const auto number = [](const std::optional<double>& value) {
    return value ? report::shown_value(json(std::round(*value * 100) / 100)) : std::string();
  };
  const auto bytes = [](const auto& value) {
    return value ? core::format_bytes(*value) : std::string();
  };
  const bool has_gpus = std::ranges::any_of(steps, [](const driver::AdvisedStep& step) {
    return step.asked.gpu_count || step.used.gpus;
  });
  const auto count = [](const auto& value) { return value ? std::to_string(*value) : ""; };
  Table table;
  std::vector<Table::Cell> heading{"STEP", "RUNS", "MEMORY ASKED", "USED", "CPUS ASKED", "USED"};
  if (has_gpus) heading.insert(heading.end(), {"GPUS ASKED", "USED"});
  heading.emplace_back("ADVICE");
  table.add(std::move(heading));
  for (const auto& step : steps) {
    const auto advice = core::joined(step.advice, ", ", [](const report::ResourceAdvice& one) {
      return one.setting + ": " + one.value;
    });
    std::vector<Table::Cell> row{step.name,
                                 std::to_string(step.used.runs),
                                 bytes(step.asked.memory),
                                 bytes(step.used.memory),
                                 number(step.asked.cpu_count),
                                 number(step.used.cpus)};
    if (has_gpus) row.insert(row.end(), {count(step.asked.gpu_count), count(step.used.gpus)});
    row.emplace_back(advice, Colour::yellow);
    table.add(std::move(row));
  }
  return table;
}

}  // namespace

core::ExitCode advise_command(Context& context) {
  driver::PipelineSource source(context);
  const auto& pipeline = source.pipeline();
  const auto& options = context.options();
  auto& store = context.store(context.state_beside(source.file()));
  const auto steps = driver::advised_steps(pipeline, store);
  if (options.json) {
    auto list = json::array();
    for (const auto& step : steps) list.push_back(json_of(step));
    context.print_json({{"pipeline", pipeline.name}, {"steps", std::move(list)}});
    return core::ExitCode::ok;
  }
  if (steps.empty()) {
    context.note("no run of '" + pipeline.name + "' has been measured yet\n");
    return core::ExitCode::ok;
  }
  const driver::FilePatch patch(source.file(), steps);
  const auto diff = patch.diff();
  if (options.advise.patch_only) {
    context.write(diff);  // Written unchanged: lines of Windows keep their ends.
    return core::ExitCode::ok;
  }
  context.print(table_of(steps).render(context.paint()));
  for (const auto& step : steps)
    for (const auto& advice : step.advice)
      context.print(step.name + ": " + advice.setting + ": " + advice.value + ", as " +
                    advice.reason + "\n");
  if (!diff.empty()) context.print("\n" + diff);
  for (const auto& line : patch.unpatched())
    context.print("not in the patch, because the step does not set the value itself: " + line +
                  "\n");
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli

#include <cmath>
#include <map>
#include <set>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/pipeline_source.hpp"
#include "cli/unified_diff.hpp"
#include "core/file.hpp"
#include "core/quantity.hpp"
#include "model/instance.hpp"
#include "report/resource_advice.hpp"
#include "report/run_values.hpp"
#include "spec/resource_places.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

struct AdvisedStep {
  std::string name;
  ResourceSettings asked;
  report::StepUse used;
  std::vector<report::ResourceAdvice> advice;
};

/// The steps of the pipeline that have been measured, in the file's order; one for all instances.
std::vector<AdvisedStep> advised_steps(const PipelineSpec& pipeline, store::RunStore& store) {
  const auto uses = report::step_uses(store, pipeline.name);
  std::vector<AdvisedStep> steps;
  std::set<std::string_view> seen;
  for (const auto& step : pipeline.steps) {
    const auto name = model::base_name(step.name);
    const auto used = uses.find(std::string(name));
    if (used == uses.end() || !seen.insert(name).second) continue;
    const auto& asked = step.settings->resources;
    steps.push_back({std::string(name), asked, used->second, report::advise(asked, used->second)});
  }
  return steps;
}

/// The changes of the pipeline file, and those that it has no line for.
class FilePatch {
 public:
  FilePatch(const std::filesystem::path& file, const std::vector<AdvisedStep>& steps)
      : name_(file.filename().string()), text_(core::read_file(file)) {
    const spec::ResourcePlaces places(text_);
    for (const auto& step : steps)
      for (const auto& advice : step.advice) {
        if (const auto place = places.find(step.name, advice.setting))
          changes_[place->line].emplace(place->column, Change{place->length, advice.value});
        else
          elsewhere_.push_back(step.name + ": {settings: {resources: {" + advice.setting + ": " +
                               advice.value + "}}}");
      }
  }

  std::string diff() const {
    const auto lines = lines_of(text_);
    std::map<unsigned, std::string> changed;
    for (const auto& [number, changes] : changes_) {
      std::string line(lines.at(number - 1));
      // From the right, so that the columns of the others stay true.
      for (auto change = changes.rbegin(); change != changes.rend(); ++change)
        line.replace(change->first - 1, change->second.length, change->second.value);
      changed.emplace(number, std::move(line));
    }
    return unified_diff(name_, text_, changed);
  }

  /// What the steps need beside the patch: they take these values from elsewhere.
  const std::vector<std::string>& elsewhere() const { return elsewhere_; }

 private:
  struct Change {
    unsigned length;
    std::string value;
  };
  std::string name_, text_;
  std::map<unsigned, std::map<unsigned, Change>> changes_;  ///< By line, by column.
  std::vector<std::string> elsewhere_;
};

json json_of(const AdvisedStep& step) {
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

Table table_of(const std::vector<AdvisedStep>& steps) {
  const auto number = [](const std::optional<double>& value) {
    return value ? report::shown_value(json(std::round(*value * 100) / 100)) : std::string();
  };
  const auto bytes = [](const auto& value) {
    return value ? core::format_bytes(*value) : std::string();
  };
  const bool has_gpus = std::ranges::any_of(
      steps, [](const AdvisedStep& step) { return step.asked.gpu_count || step.used.gpus; });
  const auto count = [](const auto& value) { return value ? std::to_string(*value) : ""; };
  Table table;
  std::vector<Table::Cell> heading{"STEP", "RUNS", "MEMORY ASKED", "USED", "CPUS ASKED", "USED"};
  if (has_gpus) heading.insert(heading.end(), {"GPUS ASKED", "USED"});
  heading.emplace_back("ADVICE");
  table.add(std::move(heading));
  for (const auto& step : steps) {
    std::string advice;
    for (const auto& [setting, value, reason] : step.advice)
      advice += (advice.empty() ? "" : ", ") + setting + ": " + value;
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
  PipelineSource source(context);
  const auto& pipeline = source.pipeline();
  const auto& options = context.options();
  auto& store = context.store(context.state_beside(source.file()));
  const auto steps = advised_steps(pipeline, store);
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
  const FilePatch patch(source.file(), steps);
  const auto diff = patch.diff();
  if (options.advise.patch_only) {
    context.print(diff);
    return core::ExitCode::ok;
  }
  context.print(table_of(steps).render(context.paint()));
  for (const auto& step : steps)
    for (const auto& advice : step.advice)
      context.print(step.name + ": " + advice.setting + ": " + advice.value + ", as " +
                    advice.reason + "\n");
  if (!diff.empty()) context.print("\n" + diff);
  for (const auto& line : patch.elsewhere())
    context.print("not in the patch, as the step takes the value from elsewhere: " + line + "\n");
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli

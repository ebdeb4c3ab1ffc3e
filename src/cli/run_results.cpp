#include "cli/run_results.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "cli/recorded_steps.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

constexpr std::size_t most_results = 12;

RunStatus status_named(const std::string& name) {
  for (const auto status : {RunStatus::succeeded, RunStatus::failed})
    if (to_string(status) == name) return status;
  return RunStatus::interrupted;
}

}  // namespace

std::vector<Result> results_of(Session& session) {
  std::set<std::pair<std::string_view, std::string_view>> taken;
  std::vector<const StepSpec*> interesting;
  std::size_t outputs = 0;
  for (const auto& step : session.pipeline().steps) {
    outputs += step.outputs.size();
    for (const auto& input : step.inputs)
      for (const auto& source : input.sources) taken.emplace(source.step, source.output);
  }
  if (outputs <= most_results) taken.clear();
  const auto is_taken = [&](const StepSpec& step, const std::string& output) {
    return taken.contains({step.name, output});
  };
  for (const auto& step : session.pipeline().steps)
    if (std::ranges::any_of(step.outputs,
                            [&](const auto& output) { return !is_taken(step, output.name); }))
      interesting.push_back(&step);
  std::vector<Result> results;
  if (interesting.empty()) return results;
  const auto recorded = session.runs.steps(session.run_id);
  std::unordered_map<std::string_view, const store::StepRecord*> by_name;
  for (const auto& step : recorded) by_name.emplace(step.name, &step);
  for (const auto* step : interesting) {
    auto found = by_name.find(step->name);
    if (const auto last = step->repeat ? last_round(recorded, step->name) : recorded.end();
        last != recorded.end())
      found = by_name.find(last->name);
    if (found == by_name.end()) continue;
    for (const auto& output : found->second->outputs)
      if (results.size() < most_results && !is_taken(*step, output.name))
        results.push_back({step->name + "." + output.name,
                           session.context.artifacts().path(output.digest), output.bytes});
  }
  return results;
}

json summary_json(const Summary& summary, core::ExitCode exit_code) {
  const auto& outcome = summary.outcome;
  json object{{"event", "summary"},
              {"run", outcome.run},
              {"status", to_string(outcome.status)},
              {"succeeded", outcome.succeeded},
              {"reused", outcome.cached},
              {"failed", outcome.failed},
              {"skipped", outcome.skipped},
              {"cancelled", outcome.cancelled},
              {"exit_code", static_cast<int>(exit_code)},
              {"results", json::array()}};
  for (const auto& result : summary.results)
    object["results"].push_back(
        {{"output", result.name}, {"path", shown_path(result.path)}, {"bytes", result.bytes}});
  return object;
}

std::optional<core::ExitCode> read_summary(const json& object, Context& context,
                                           store::RunStore& runs, Summary& summary) {
  if (object.value("event", "") != "summary") return std::nullopt;
  const auto count = [&](const char* key) { return object.value(key, std::size_t{0}); };
  auto& outcome = summary.outcome;
  outcome = {.run = object.value("run", ""),
             .status = status_named(object.value("status", "")),
             .succeeded = count("succeeded"),
             .cached = count("reused"),
             .failed = count("failed"),
             .skipped = count("skipped"),
             .cancelled = count("cancelled")};
  const auto steps = runs.steps(outcome.run);
  summary.results.clear();
  for (const auto& result : object.value("results", json::array())) {
    const auto name = result.value("output", "");
    const auto dot = std::min(name.rfind('.'), name.size());
    auto step = std::ranges::find(steps, name.substr(0, dot), &store::StepRecord::name);
    if (step == steps.end()) step = last_round(steps, name.substr(0, dot));
    if (step == steps.end()) continue;
    for (const auto& output : step->outputs)
      if (name.substr(dot) == "." + output.name && context.artifacts().has(output.digest))
        summary.results.push_back({name, context.artifacts().path(output.digest), output.bytes});
  }
  return static_cast<core::ExitCode>(object.value("exit_code", 0));
}

void show_summary(const Context& context, const store::RunStore& runs, Summary summary,
                  core::ExitCode exit_code) {
  if (context.options().json) return context.print(summary_json(summary, exit_code).dump() + "\n");
  if (!summary.results.empty())
    summary.copy_command = context.options().name + " artifacts " + summary.outcome.run + " " +
                           summary.results.back().name + " --copy DEST" +
                           context.state_option(runs.folder());
  context.print(render_summary(summary, context.paint()));
}

}  // namespace pipeline::cli

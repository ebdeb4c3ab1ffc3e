#include "driver/run_results.hpp"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "driver/output_links.hpp"
#include "driver/recorded_steps.hpp"
#include "model/instance.hpp"

namespace pipeline::driver {
namespace {

using nlohmann::json;

/// Maximum number of outputs that are shown at the end of a run.
constexpr std::size_t max_results = 12;

RunStatus status_named(const std::string& name) {
  for (const auto status : {RunStatus::succeeded, RunStatus::failed})
    if (to_string(status) == name) return status;
  return RunStatus::interrupted;
}

bool is_instance(std::string_view name, std::string_view step) {
  return model::base_name(name) == step && name != step;
}

/// The records of the run's steps, each read when it is asked for.
class Recorded {
 public:
  explicit Recorded(Session& session) : session_(session) {}

  /// Returns the records of a step of the pipeline: its own, that of its last round, or those of
  /// its instances.
  std::vector<store::StepRecord> records_of(const StepSpec& step) {
    auto& runs = session_.store.runs();
    if (!step.matrix && !step.repeat) return runs.steps(session_.run_id, step.name);
    // Names of instances and rounds are known only from the records.
    if (all_.empty()) all_ = runs.steps(session_.run_id);
    if (const auto last = last_round(all_, step.name); !step.matrix && last != all_.end())
      return {*last};
    std::vector<store::StepRecord> found;
    for (const auto& record : all_)
      if (step.matrix ? is_instance(record.name, step.name) : record.name == step.name)
        found.push_back(record);
    return found;
  }

 private:
  Session& session_;
  std::vector<store::StepRecord> all_;
};

}  // namespace

core::ExitCode exit_code_of(const engine::RunSummary& outcome) {
  if (outcome.status == RunStatus::interrupted) return core::ExitCode::interrupted;
  if (outcome.status == RunStatus::succeeded) return core::ExitCode::ok;
  if (outcome.build_failed) return core::ExitCode::build_failed;
  return outcome.environment_failed ? core::ExitCode::environment : core::ExitCode::step_failed;
}

std::vector<ShownResult> results_of(Session& session) {
  const auto& steps = session.pipeline().steps;
  Recorded recorded(session);
  std::set<std::pair<std::string_view, std::string_view>> taken;
  std::size_t outputs = 0;
  for (const auto& step : steps) {
    outputs += step.outputs.size() * (step.matrix ? recorded.records_of(step).size() : 1);
    for (const auto& input : step.inputs)
      for (const auto& source : input.sources) taken.emplace(source.step, source.output);
    if (!step.matrix) continue;
    for (const auto& axis : step.matrix->axes)
      if (axis.items) taken.emplace(axis.items->source.step, axis.items->source.output);
  }
  if (outputs <= max_results) taken.clear();
  const auto& artifacts = session.workspace.artifacts();
  std::vector<ShownResult> results;
  for (const auto& step : steps) {
    const auto is_shown = [&](const auto& output) {
      return !taken.contains({step.name, output.name});
    };
    if (results.size() == max_results) break;
    if (std::ranges::none_of(step.outputs, is_shown)) continue;
    for (const auto& made : recorded.records_of(step)) {
      const auto& name = step.matrix ? made.name : step.name;
      for (const auto& output : made.outputs)
        if (results.size() < max_results && is_shown(output) &&
            !(output.temp && !artifacts.is_known(output.digest)))
          results.push_back(
              {name + "." + output.name, link_to_output(artifacts, name, output), output.bytes});
    }
  }
  return results;
}

json summary_json(const RunEnd& end) {
  const auto& outcome = end.outcome;
  json object{{"event", "summary"},
              {"run", outcome.run},
              {"status", to_string(outcome.status)},
              {"succeeded", outcome.succeeded},
              {"reused", outcome.cached},
              {"failed", outcome.failed},
              {"skipped", outcome.skipped},
              {"cancelled", outcome.cancelled},
              {"exit_code", static_cast<int>(end.exit_code)},
              {"results", json::array()}};
  for (const auto& result : end.results)
    object["results"].push_back(
        {{"output", result.name}, {"path", shown_path(result.path)}, {"bytes", result.bytes}});
  return object;
}

std::optional<RunEnd> read_summary(const json& object, Workspace& workspace,
                                   store::RunStore& store) try {
  if (object.value("event", "") != "summary") return std::nullopt;
  const auto count = [&](const char* key) { return object.value(key, std::size_t{0}); };
  RunEnd end{.state = store.folder(),
             .outcome = {.run = object.value("run", ""),
                         .status = status_named(object.value("status", "")),
                         .succeeded = count("succeeded"),
                         .cached = count("reused"),
                         .failed = count("failed"),
                         .skipped = count("skipped"),
                         .cancelled = count("cancelled")},
             .results = {},
             .exit_code = static_cast<core::ExitCode>(object.value("exit_code", 0))};
  const auto steps = store.runs().steps(end.outcome.run);
  for (const auto& result : object.value("results", json::array())) {
    const auto name = result.value("output", "");
    const auto dot = std::min(name.rfind('.'), name.size());
    auto step = std::ranges::find(steps, name.substr(0, dot), &store::StepRecord::name);
    if (step == steps.end()) step = last_round(steps, name.substr(0, dot));
    if (step == steps.end()) continue;
    for (const auto& output : step->outputs)
      if (name.substr(dot) == "." + output.name && workspace.artifacts().is_known(output.digest))
        end.results.push_back({name,
                               link_to_output(workspace.artifacts(), name.substr(0, dot), output),
                               output.bytes});
  }
  return end;
} catch (const json::exception&) {
  return std::nullopt;
}

}  // namespace pipeline::driver

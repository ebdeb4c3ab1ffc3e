#include "driver/run_results.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

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

/// The records of the run's steps, read when they are first asked for.
class Recorded {
 public:
  explicit Recorded(Session& session) : session_(session) {}

  /// Returns the records of a step of the pipeline: its own, that of its last round, or those of
  /// its instances.
  std::vector<const store::StepRecord*> of(const StepSpec& step) {
    if (!is_read_) read();
    std::vector<const store::StepRecord*> found;
    if (step.matrix) {
      for (const auto& record : records_)
        if (is_instance(record.name, step.name)) found.push_back(&record);
      return found;
    }
    auto known = by_name_.find(step.name);
    if (const auto last = step.repeat ? last_round(records_, step.name) : records_.end();
        last != records_.end())
      known = by_name_.find(last->name);
    if (known != by_name_.end()) found.push_back(known->second);
    return found;
  }

 private:
  void read() {
    is_read_ = true;
    records_ = session_.store.runs().steps(session_.run_id);
    for (const auto& record : records_) by_name_.emplace(record.name, &record);
  }

  Session& session_;
  bool is_read_ = false;
  std::vector<store::StepRecord> records_;
  std::unordered_map<std::string_view, const store::StepRecord*> by_name_;
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
    outputs += step.outputs.size() * (step.matrix ? recorded.of(step).size() : 1);
    for (const auto& input : step.inputs)
      for (const auto& source : input.sources) taken.emplace(source.step, source.output);
  }
  if (outputs <= max_results) taken.clear();
  const auto& artifacts = session.workspace.artifacts();
  std::vector<ShownResult> results;
  for (const auto& step : steps) {
    const auto is_shown = [&](const auto& output) {
      return !taken.contains({step.name, output.name});
    };
    if (std::ranges::none_of(step.outputs, is_shown)) continue;
    for (const auto* made : recorded.of(step)) {
      const auto& name = step.matrix ? made->name : step.name;
      for (const auto& output : made->outputs)
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
                                   store::RunStore& store) {
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
}

}  // namespace pipeline::driver

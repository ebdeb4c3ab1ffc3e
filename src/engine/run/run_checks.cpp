#include "engine/run/run_checks.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "async/on_pool.hpp"
#include "core/error.hpp"
#include "engine/data/download.hpp"
#include "engine/run/dry_starter.hpp"
#include "engine/run/refusal.hpp"
#include "model/findings.hpp"
#include "model/step_span.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::engine {
namespace {

/// Removes steps whose conditions are false regardless of what other steps make.
void remove_ruled_out(std::vector<const StepSpec*>& steps, store::ArtifactStore& artifacts) {
  std::erase_if(steps, [&](const StepSpec* step) { return is_ruled_out(*step, artifacts); });
}

/// Throws EnvironmentError unless all variables and secrets of the steps have values.
void check_secrets(const std::vector<const StepSpec*>& steps) {
  for (const auto* step : steps) {
    if (!step->environment.empty()) resolve_environment(*step);
    if (!step->secrets.empty()) resolve_secrets(*step);
  }
}

/// Reports steps that use more than a whole limit, and limits that no profile sets.
std::vector<core::Diagnostic> check_limits(const RunContext& context,
                                           const std::vector<const StepSpec*>& steps) {
  std::vector<core::Diagnostic> wrong;
  std::set<std::string> unknown;
  const auto& limits = context.services.pipeline.limits;
  for (const auto* step : steps)
    for (const auto& [name, count] : step->uses) {
      const auto limit = limits.find(name);
      if (limit == limits.end() && unknown.insert(name).second)
        context.events.emit(event::Notice{
            step->name, "no profile sets the limit '" + name + "', so nothing limits its use"});
      if (limit != limits.end() && count > limit->second)
        wrong.push_back({"impossible-limit",
                         "step '" + step->name + "' uses " + std::to_string(count) +
                             " of the limit '" + name + "', which is " +
                             std::to_string(limit->second),
                         model::span_of(*step),
                         {},
                         {}});
    }
  return wrong;
}

/// Steps that their orchestrator cannot run, keyed by its name.
using StepsByOrchestrator = std::map<std::string, std::vector<const StepSpec*>>;

/// Adds a finding for each orchestrator.
/// @param before,after parts of the message, before and after the orchestrator's name
void add_findings(model::Findings& found, const StepsByOrchestrator& all, const char* code,
                  const std::string& before, const std::string& after, const char* advice) {
  for (const auto& [name, steps] : all)
    found.add(steps,
              {code, before + ", and the orchestrator '" + name + "' " + after, {}, {}, advice});
}

/// Reports steps with services whose orchestrator does not run services.
std::vector<core::Diagnostic> check_services(const RunContext& context,
                                             const std::vector<const StepSpec*>& steps) {
  StepsByOrchestrator without;
  for (const auto* step : steps) {
    if (step->services.empty()) continue;
    const auto& capabilities = context.services.routes.capabilities_of(*step);
    if (!capabilities.services) without[capabilities.name].push_back(step);
  }
  model::Findings found;
  add_findings(found, without, "no-services", "has services, which are containers",
               "runs none beside a step",
               "write `orchestrator: docker` or `orchestrator: kubernetes` for the step, or run "
               "with that `--orchestrator`");
  return found.all();
}

/// Reports steps with nodes whose orchestrator cannot run so many processes as one step.
std::vector<core::Diagnostic> check_nodes(const RunContext& context,
                                          const std::vector<const StepSpec*>& steps) {
  StepsByOrchestrator without;
  for (const auto* step : steps) {
    if (!step->nodes) continue;
    const auto& capabilities = context.services.routes.capabilities_of(*step);
    if (!capabilities.traits.runs_nodes) without[capabilities.name].push_back(step);
  }
  model::Findings found;
  add_findings(found, without, "no-nodes", "has `nodes`", "runs one process for a step",
               "run it with `--orchestrator local` or `--orchestrator docker`, or leave `nodes` "
               "out");
  return found.all();
}

/// Reports steps that name GPUs, or ask for all of a machine, on an orchestrator that takes only a
/// number of them.
std::vector<core::Diagnostic> check_chosen_gpus(const RunContext& context,
                                                const std::vector<const StepSpec*>& steps) {
  using Selection = settings::GpuRequest::Selection;
  std::vector<core::Diagnostic> wrong;
  for (const auto* step : steps) {
    const auto request = settings::gpu_request(step->settings->resources);
    const auto& capabilities = context.services.routes.capabilities_of(*step);
    if (!capabilities.gpus || capabilities.explicit_devices) continue;
    const auto add = [&](const std::string& asks, const std::string& answers,
                         const std::string& suggestion) {
      wrong.push_back({"gpu-choice",
                       "step '" + step->name + "' " + asks + ", and the orchestrator " +
                           capabilities.name + " " + answers,
                       model::span_of(*step),
                       {},
                       suggestion});
    };
    if (request.selection == Selection::devices)
      add("names its GPUs", "chooses them itself",
          "ask for a number of them: `gpu_count: " + std::to_string(request.devices.size()) + "`");
    else if (request.selection == Selection::all && !request.if_present &&
             !capabilities.on_this_machine)
      add("asks for all GPUs of its machine", "gives GPUs by number",
          "say how many: `gpu_count: 1`");
  }
  return wrong;
}

/// The checks of check_steps(), for steps that their conditions do not rule out.
void check_remaining(const RunContext& context, const std::vector<const StepSpec*>& steps) {
  const auto& pipeline = context.services.pipeline;
  refuse(check_limits(context, steps), pipeline);
  refuse(check_services(context, steps), pipeline);
  refuse(check_nodes(context, steps), pipeline);
  refuse(check_chosen_gpus(context, steps), pipeline);
}

/// Reads the steps' data and code. Called on the thread pool: on the event loop, large files would
/// delay signals.
void read_files(Results& results, const std::vector<const StepSpec*>& steps) {
  for (const auto* step : steps) {
    for (const auto& input : step->inputs)
      if (input.data && !input.data->path.empty()) results.data().of(input.data->path);
    try {
      results.keys().read_code(*step);
    } catch (const core::EnvironmentError&) {  // Reported when the step is started.
    } catch (const core::InputError&) {
    }
  }
}

/// Walks until a step has no earlier result.
class ResultCheck final : public DryStarter {
 public:
  using DryStarter::DryStarter;
  bool has_all() const { return has_all_; }
  bool may_start() const override { return has_all_; }
  void take(model::StepIndex i, Decision decision) override {
    has_all_ =
        decision.error.empty() && decision.condition.empty() &&
        (decision.action == Decision::Action::reuse || decision.action == Decision::Action::skip);
    end_step(i, std::move(decision));
  }
  void fail(model::StepIndex /*i*/, const core::EnvironmentError& /*error*/) override {
    has_all_ = false;  // Reported when the step is started.
  }
  void fail(model::StepIndex /*i*/, Failure /*failure*/) override { has_all_ = false; }
  void leave_open(model::StepIndex /*i*/, const std::string& /*reason*/) override {
    has_all_ = false;
  }

 private:
  bool has_all_ = true;
};

/// Returns true if every step has an earlier result on this machine, or is skipped.
async::Task<bool> has_all_results(const RunContext& context, Results& results) {
  if (!context.options.use_cache) co_return false;
  GraphWalk walk(context, results);
  ResultCheck check(walk);
  co_await walk.run(check);
  co_return check.has_all();
}

}  // namespace

void check_steps(const RunContext& context, std::vector<const StepSpec*> steps) {
  remove_ruled_out(steps, context.services.artifacts);
  check_remaining(context, steps);
}

async::Task<> check_run(const RunContext& context, Results& results, GpuReserver& gpus,
                        const std::vector<const StepSpec*>& all) {
  const auto& services = context.services;
  auto steps = all;
  remove_ruled_out(steps, services.artifacts);
  check_secrets(steps);
  auto& data = results.data();
  const auto& options = context.options;
  const std::string_view continued =
      options.resume ? std::string_view(options.run_id) : std::string_view();
  co_await data.look_up(services.pipeline, options.remote_cache, continued);
  for (const auto* step : steps)
    for (const auto& input : step->inputs)
      if (input.data && !input.data->artifact.empty()) data.artifact(*input.data);
  Downloads downloads(services, context.events, context.user_stop);
  co_await data.pins().lock(steps, downloads, context.events, context.user_stop);
  co_await async::on_pool(context.pool, [&] { read_files(results, all); });
  co_await gpus.check(steps, services.pipeline);
  check_remaining(context, steps);
  auto diagnostics = co_await services.routes.check(steps);
  refuse(std::move(diagnostics), services.pipeline);
  if (!results.has_remote_cache() || std::ranges::none_of(steps, &StepSpec::cache)) co_return;
  const bool has_all = co_await has_all_results(context, results);
  if (!has_all) co_await results.check_remote_cache();
}

}  // namespace pipeline::engine

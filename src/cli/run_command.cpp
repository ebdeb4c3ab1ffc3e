#include <algorithm>
#include <future>
#include <set>

#include "cli/commands.hpp"
#include "cli/display.hpp"
#include "cli/gpu_warnings.hpp"
#include "cli/notifications.hpp"
#include "cli/session.hpp"
#include "cli/storage.hpp"
#include "cli/summary.hpp"
#include "core/diagnostic.hpp"
#include "core/identifier.hpp"
#include "detached/drivers.hpp"
#include "detached/held_lease.hpp"
#include "detached/invocation.hpp"
#include "dsl/builder.hpp"
#include "engine/run_fingerprint.hpp"
#include "vcs/repository.hpp"

namespace pipeline::cli {
namespace {

/// Returns the run's outputs, made or reused: all of them or, in a large pipeline, those that no
/// step takes.
std::vector<Result> results_of(Session& session) {
  constexpr std::size_t most = 12;
  std::set<std::pair<std::string_view, std::string_view>> taken;
  std::set<std::string_view> interesting;
  std::size_t outputs = 0;
  for (const auto& step : session.pipeline().steps) {
    outputs += step.outputs.size();
    for (const auto& input : step.inputs)
      for (const auto& source : input.sources) taken.emplace(source.step, source.output);
  }
  if (outputs <= most) taken.clear();
  for (const auto& step : session.pipeline().steps)
    for (const auto& output : step.outputs)
      if (!taken.contains({step.name, output.name})) interesting.insert(step.name);
  std::vector<Result> results;
  if (interesting.empty()) return results;
  for (const auto& step : session.runs.steps(session.run_id)) {
    if (!interesting.contains(step.name)) continue;
    for (const auto& output : step.outputs)
      if (results.size() < most && !taken.contains({step.name, output.name}))
        results.push_back({step.name + "." + output.name,
                           shown_path(session.context.artifacts().path(output.digest)),
                           output.bytes});
  }
  return results;
}

std::string copy_command(Session& session, const std::vector<Result>& results) {
  if (results.empty()) return {};
  return session.context.options().name + " artifacts " + session.run_id + " " +
         results.back().name + " --copy DEST" + session.context.state_option(session.runs.folder());
}

nlohmann::json summary_json(const Summary& summary) {
  const auto& outcome = summary.outcome;
  nlohmann::json document{{"event", "summary"},
                          {"run", outcome.run},
                          {"status", to_string(outcome.status)},
                          {"succeeded", outcome.succeeded},
                          {"reused", outcome.cached},
                          {"failed", outcome.failed},
                          {"skipped", outcome.skipped},
                          {"cancelled", outcome.cancelled},
                          {"exit_code", static_cast<int>(exit_code_of(outcome))},
                          {"results", nlohmann::json::array()}};
  for (const auto& result : summary.results)
    document["results"].push_back(
        {{"output", result.name}, {"path", result.path}, {"bytes", result.bytes}});
  return document;
}

/// Returns everything that determines a run besides the content of files, variables and
/// environments; the run's fingerprint is looked up by it.
std::string identity_of(const Session& session) {
  const auto& options = session.context.options();
  return nlohmann::json{PIPELINE_VERSION,
                        session.source.file().string(),
                        options.orchestrator,
                        options.profile,
                        options.parameters,
                        options.step,
                        options.execution_mode,
                        options.template_dir.string(),
                        options.program ? dsl::identity_of(*options.program) : ""}
      .dump();
}

/// Returns the earlier run if nothing has changed since, without reading the pipeline.
std::optional<engine::RunSummary> run_again(Session& session, Display& display,
                                            const engine::RunOptions& options) {
  if (!options.use_cache || !options.force.empty() || !options.from.empty()) return std::nullopt;
  // Steps of a large pipeline are counted instead of listed; the last run shows how large it is.
  const auto last = session.runs.find_run("latest");
  const bool each_step = session.context.options().json || !last || last->steps <= many_steps;
  try {
    return session.context.await(engine::reuse_by_fingerprint(
        options.identity, session.orchestrator(), session.runs, session.context.artifacts(),
        display.progress(), options, each_step));
  } catch (const core::EnvironmentError&) {
    return std::nullopt;  // The run itself meets the error again and reports it.
  }
}

/// Drives a run.
/// @param resumed the run to continue; empty: a new run
/// @param detached record of a detached run that is known to have no driver any more
core::ExitCode drive(Context& context, const std::string& resumed,
                     detached::DetachedRecord* detached = nullptr) {
  (void)storage_budget(context.options());  // Throws for a variable that is no size.
  // Reading the state of the source takes libgit2 some milliseconds, so it is done concurrently.
  auto source = std::async(std::launch::async, [folder = context.pipeline_file().parent_path()] {
    return vcs::source_state(folder);
  });
  Session session(context, resumed, detached);
  recover_dead_runs(context, session.runs, resumed, detached ? resumed : "");
  auto options = session.run_options();
  if (!detached) options.identity = identity_of(session);
  if (const auto state = source.get()) {
    options.git_commit = state->commit;
    options.git_dirty = state->dirty;
  }

  Display display(context);
  options.resume = !resumed.empty();
  auto outcome = options.resume ? std::nullopt : run_again(session, display, options);
  if (!outcome) {
    options.sources = session.source.sources();
    if (!detached) {
      require_engine(session);
      report_gpu_warnings(session, display.progress());
    }
    options.final_sources = [&session] { return session.settle_lock(); };
    options.is_task = session.source.is_task();
    options.machine = session.machine_in_use();
    if (!detached) detached::keep_invocation(session.runs, session.run_id, context.options());
    if (!session.pipeline().notify.empty()) options.identity.clear();  // Each end is reported.
    outcome = context.await(
        engine::run(session.services(), display.progress(), display.cancel(), options));
    send_notifications(context, session.pipeline(), session.runs, session.run_id,
                       display.progress());
  }
  display.close();
  const auto& model = display.progress().model();
  Summary summary{
      model, *outcome, {}, {}, context.options().name, context.state_option(session.runs.folder())};
  if (model.total <= many_steps || outcome->succeeded > 0) summary.results = results_of(session);
  summary.copy_command = copy_command(session, summary.results);
  if (context.options().json) {
    context.print(summary_json(summary).dump() + "\n");
  } else {
    context.print(render_summary(summary, context.paint()));
  }
  if (outcome->succeeded > 0) warn_of_storage(context, session.runs);
  return exit_code_of(*outcome);
}

}  // namespace

core::ExitCode run_command(Context& context) {
  return context.options().detach ? detach_command(context) : drive(context, {});
}

core::ExitCode resume_command(Context& context) {
  auto& runs = context.existing_runs();
  detached::Drivers drivers(context.driver_context(), runs);
  auto run = find_run(context, drivers, runs);
  const std::string follow =
      "`" + context.options().name + " logs " + run.id + " STEP -f` follows it";
  if (drivers.goes_on(run)) {
    if (drivers.liveness_of(run) == detached::Drivers::Liveness::unknown)
      throw drivers.not_known(run);
    throw core::InputError(
        "run " + run.id + " is still running: " + detached::name_of(run.driver) + " drives it",
        follow);
  }
  const auto refuse_ended = [&] {
    if (run.status != RunStatus::running && run.status != RunStatus::interrupted)
      throw core::InputError(
          "run " + run.id + " has ended: " + std::string(to_string(run.status)),
          "`" + context.options().name + " run` runs what did not succeed, and what has changed");
  };
  refuse_ended();
  auto options = recorded_options(runs, run.id, context.options());
  if (!options)
    throw core::InputError("it was not kept how run " + run.id + " was begun",
                           "`" + context.options().name + " run` reuses what it has made");
  Context again(std::move(*options));
  auto detached = detached::detached_of(runs, run.id);
  if (!detached || !run.driver.is_elsewhere())
    return drive(again, run.id, detached ? &*detached : nullptr);
  detached::HeldLease lease(again.driver_context(), cluster_of(again.options()),
                            run.driver.lease.name);
  drivers.bring_home(run);
  refuse_ended();
  const auto code = drive(again, run.id, &*detached);
  lease.is_done();
  return code;
}

}  // namespace pipeline::cli

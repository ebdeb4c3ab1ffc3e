#include <algorithm>
#include <future>

#include "cli/background.hpp"
#include "cli/commands.hpp"
#include "cli/display.hpp"
#include "cli/event_log.hpp"
#include "cli/gpu_warnings.hpp"
#include "cli/notifications.hpp"
#include "cli/report_error.hpp"
#include "cli/run_results.hpp"
#include "cli/session.hpp"
#include "cli/storage.hpp"
#include "cli/summary.hpp"
#include "core/diagnostic.hpp"
#include "core/identifier.hpp"
#include "core/utf8.hpp"
#include "detached/drivers.hpp"
#include "detached/held_lease.hpp"
#include "detached/invocation.hpp"
#include "dsl/builder.hpp"
#include "engine/cache/run_fingerprint.hpp"
#include "vcs/repository.hpp"

namespace pipeline::cli {
namespace {

/// Throws InputError for names that are not UTF-8: runs are recorded as JSON, which has no others.
void check_encoding(const Context& context) {
  const auto& options = context.options();
  std::vector<std::string> names{context.pipeline_file().string(), options.template_dir.string(),
                                 options.step, options.context, options.name_space};
  names.insert(names.end(), options.force.begin(), options.force.end());
  names.insert(names.end(), options.from.begin(), options.from.end());
  for (const auto& name : names)
    if (!core::is_utf8(name))
      throw core::InputError("'" + core::printable(name) + "' is not UTF-8",
                             "rename the file or the folder, or write the name in UTF-8");
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
                                            engine::EngineOptions options) {
  if (!options.use_cache || !options.force.empty() || !options.from.empty()) return std::nullopt;
  // Steps of a large pipeline are counted instead of listed; the last run shows how large it is.
  const auto last = session.store.runs().find("latest");
  options.reports_reused_steps =
      session.context.options().json || !last || last->steps <= many_steps;
  try {
    return session.context.await(engine::reuse_by_fingerprint(
        session.orchestrator(), session.store, session.context.artifacts(), display.progress(),
        std::move(options)));
  } catch (const core::EnvironmentError&) {
    return std::nullopt;  // The run itself meets the error again and reports it.
  }
}

/// Records the events of a run for `pipe attach`, if it was begun in the background.
/// @param log opened where a run is continued at a terminal
void record_events(Session& session, Display& display, Background* background,
                   std::optional<EventLog>& log) {
  if (background)
    return display.progress().record([&session, background](const Event& event) {
      if (std::holds_alternative<event::RunStarted>(event) && !background->has_left())
        background->leave_terminal(session.store, session.run_id);
      background->add(event);
    });
  if (event_logs(session.store, session.run_id).empty()) return;
  log.emplace(session.store, session.run_id);
  display.progress().record([&log](const Event& event) { log->add(event); });
}

/// Drives a run.
/// @param resumed the run to continue; empty: a new run
/// @param detached record of a detached run that is known to have no driver any more
/// @param background null: the run is shown until it ends
core::ExitCode drive(Context& context, const std::string& resumed,
                     detached::DetachedRecord* detached = nullptr,
                     Background* background = nullptr) {
  (void)storage_budget(context.options());  // Throws for a variable that is no size.
  // Reading the state of the source takes libgit2 some milliseconds, so it is done concurrently.
  auto source = std::async(std::launch::async, [folder = context.pipeline_file().parent_path()] {
    return vcs::source_state(folder);
  });
  Session session(context, resumed, detached);
  recover_dead_runs(context, session.store, resumed, detached ? resumed : "");
  auto options = session.run_options();
  if (!detached) options.identity = identity_of(session);
  if (const auto state = source.get()) {
    options.git_commit = state->commit;
    options.git_dirty = state->dirty;
  }

  Display display(context, true, background);
  std::optional<EventLog> log;
  record_events(session, display, background, log);
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
    if (!detached) detached::keep_invocation(session.store, session.run_id, context.options());
    if (!session.pipeline().notify.empty()) options.identity.clear();  // Each end is reported.
    try {
      outcome = context.await(
          engine::run(session.services(), display.progress(), display.cancel(), options));
    } catch (const core::EnvironmentError&) {
      // A download before the run began was stopped.
      if (display.cancel().level() == core::StopLevel::none) throw;
      display.close();
      throw Interrupted();
    }
    send_notifications(context, session.pipeline(), session.store, session.run_id,
                       display.progress());
  }
  display.close();
  Summary summary{display.progress().model(),
                  *outcome,
                  {},
                  {},
                  context.options().name,
                  context.state_option(session.store.folder())};
  if (summary.model.total <= many_steps || outcome->succeeded > 0)
    summary.results = results_of(session);
  const auto exit_code = exit_code_of(*outcome);
  const auto object = summary_json(summary, exit_code);
  if (log) log->add(object);
  if (background)
    background->add(object);
  else
    show_summary(context, session.store, std::move(summary), exit_code);
  if (outcome->succeeded > 0) warn_of_storage(context, session.store);
  return exit_code;
}

/// @param background null: the run is shown until it ends
core::ExitCode resume(Context& context, Background* background) {
  auto& store = context.existing_store();
  detached::Drivers drivers(context.driver_context(), store);
  auto run = find_run(context, drivers, store);
  if (background && run.driver.is_elsewhere())
    throw core::InputError(
        "run " + run.id + " was handed to a cluster, and is continued at a terminal",
        "leave out --detach");
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
  auto options = recorded_options(store, run.id, context.options());
  if (!options)
    throw core::InputError("it was not kept how run " + run.id + " was begun",
                           "`" + context.options().name + " run` reuses what it has made");
  Context again(std::move(*options));
  auto detached = detached::detached_of(store, run.id);
  if (!detached || !run.driver.is_elsewhere())
    return drive(again, run.id, detached ? &*detached : nullptr, background);
  detached::HeldLease lease(again.driver_context(), cluster_of(again.options()),
                            run.driver.lease.name);
  drivers.bring_home(run);
  refuse_ended();
  const auto code = drive(again, run.id, &*detached);
  lease.is_done();
  return code;
}

}  // namespace

core::ExitCode run_command(Context& context) {
  const auto& options = context.options();
  check_encoding(context);
  if (!options.detach) return drive(context, {});
  if (options.orchestrator == "kubernetes") return detach_command(context);
  return drive_in_background(
      context, [&](Background& background) { return drive(context, {}, nullptr, &background); });
}

core::ExitCode resume_command(Context& context) {
  if (!context.options().detach) return resume(context, nullptr);
  return drive_in_background(context,
                             [&](Background& background) { return resume(context, &background); });
}

}  // namespace pipeline::cli

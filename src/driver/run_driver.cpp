#include "driver/run_driver.hpp"

#include <nlohmann/json.hpp>

#include "driver/error_report.hpp"
#include "driver/invocation.hpp"
#include "driver/notifications.hpp"
#include "driver/recovery.hpp"
#include "driver/remote_use.hpp"
#include "driver/run_model.hpp"
#include "driver/step_warnings.hpp"
#include "driver/storage.hpp"
#include "dsl/builder.hpp"
#include "engine/cache/run_fingerprint.hpp"

namespace pipeline::driver {
namespace {

/// Returns everything that determines a run besides the content of files, variables and
/// environments; the run's fingerprint is looked up by it.
std::string identity_of(const Session& session) {
  const auto& options = session.workspace.options();
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

/// Reads commit and dirty state of the source on a thread of its own, because libgit2 takes some
/// milliseconds.
std::future<std::optional<vcs::SourceState>> read_source_state(const Workspace& workspace) {
  return std::async(std::launch::async, [folder = workspace.pipeline_file().parent_path()] {
    return vcs::source_state(folder);
  });
}

/// Returns the workspace. Throws InputError for a storage budget that is not a size, before
/// anything is opened.
Workspace& with_valid_budget(Workspace& workspace) {
  (void)storage_budget(workspace.options());
  return workspace;
}

/// Returns the pipeline with all secrets from the environment of this process: the secrets' files
/// that the pipeline names are on the machine that started the run.
PipelineSpec pipeline_in_cluster(Session& session) {
  auto pipeline = session.pipeline();
  for (auto& step : pipeline.steps)
    for (auto& secret : step.secrets) secret.file.reset();
  for (std::size_t i = 0; i < pipeline.notify.size(); ++i)
    if (pipeline.notify[i].url.empty())
      pipeline.notify[i].url_variable = variable_of_notification(i);
  return pipeline;
}

}  // namespace

void RunDriver::Events::emit(const Event& event) {
  if (const auto* started = std::get_if<event::RunStarted>(&event)) {
    steps = started->steps;
    if (auto* background = driver_.request_.background; background && !background->has_left())
      background->leave_terminal(driver_.session_.store, driver_.session_.run_id);
  }
  if (const auto* expanded = std::get_if<event::StepExpanded>(&event)) steps = expanded->steps;
  if (driver_.request_.background) driver_.request_.background->add(event);
  if (driver_.log_) driver_.log_->add(event);
  driver_.observer_.events().emit(event);
}

RunDriver::RunDriver(Workspace& workspace, RunRequest request, RunObserver& observer)
    : workspace_(with_valid_budget(workspace)),
      request_(std::move(request)),
      observer_(observer),
      source_state_(is_in_cluster() ? std::future<std::optional<vcs::SourceState>>()
                                    : read_source_state(workspace)),
      session_(workspace, request_.run, request_.detached) {}

RunEnd RunDriver::run() {
  std::vector<store::RunRecord> recovered;
  if (!is_in_cluster())
    recovered = recover_dead_runs(workspace_, session_.store, request_.run,
                                  request_.mode == RunMode::take_over ? request_.run : "");
  auto engine_options = options();
  observer_.begin(workspace_.loop());
  const auto forwarded = workspace_.run_stopped_by(observer_.cancel());
  std::optional<core::CancelSource::Listener> stop;
  if (request_.stop)
    stop.emplace(*request_.stop, [this](core::StopLevel level) { observer_.cancel().stop(level); });
  open_log();
  auto outcome = engine_options.resume ? std::nullopt : reuse_whole_run(engine_options);
  if (!outcome) {
    prepare(engine_options);
    outcome = drive(engine_options);
  }
  observer_.end();
  if (!recovered.empty())
    remove_left_by(recovered, workspace_, session_.store, {}, session_.run_id);
  return conclude(*outcome);
}

engine::EngineOptions RunDriver::options() {
  auto options = session_.run_options();
  options.resume = request_.mode != RunMode::fresh;
  if (is_in_cluster()) {
    if (const auto run = session_.store.runs().find(request_.run)) {
      options.git_commit = run->git_commit;
      options.git_dirty = run->git_dirty;
      options.driver = run->driver;
    }
    if (request_.uploader)
      options.wait_until_persisted = [this] { return request_.uploader->save_now(); };
    return options;
  }
  if (!request_.detached) options.identity = identity_of(session_);
  if (const auto state = source_state_.get()) {
    options.git_commit = state->commit;
    options.git_dirty = state->dirty;
  }
  return options;
}

/// Opens the event log in the cluster, and for a run whose events were recorded before.
void RunDriver::open_log() {
  if (request_.background) return;
  if (is_in_cluster() || !event_logs(session_.store, session_.run_id).empty())
    log_.emplace(session_.store, session_.run_id);
}

/// Records a run that reuses the whole last run if nothing has changed since, without reading the
/// pipeline. Returns nothing if something may have changed.
std::optional<engine::RunSummary> RunDriver::reuse_whole_run(engine::EngineOptions options) {
  if (!options.use_cache || !options.force.empty() || !options.from.empty()) return std::nullopt;
  // In a large pipeline reused steps are counted instead of listed; the last run shows how large
  // the pipeline is.
  const auto last = session_.store.runs().find("latest");
  options.reports_reused_steps =
      request_.reports_reused_steps || !last || last->steps <= many_steps;
  try {
    return workspace_.await(engine::reuse_by_fingerprint(
        session_.routes(), session_.store, workspace_.artifacts(), events_, std::move(options)));
  } catch (const core::EnvironmentError&) {
    return std::nullopt;  // The run itself meets the error again and reports it.
  }
}

void RunDriver::prepare(engine::EngineOptions& options) {
  if (!is_in_cluster()) {
    options.sources = session_.source.sources();
    options.final_sources = [this] { return session_.settle_lock(); };
  }
  if (!request_.detached) {
    require_engine(session_);
    report_step_warnings(session_, observer_);
    keep_invocation(session_.store, session_.run_id, workspace_.options());
  }
  options.machine = session_.machine_in_use();
  if (!session_.pipeline().notify.empty())
    options.identity.clear();  // Without a fingerprint: each run has to send its notifications.
}

engine::RunSummary RunDriver::drive(engine::EngineOptions& options) {
  std::optional<PipelineSpec> changed;
  if (is_in_cluster()) changed = pipeline_in_cluster(session_);
  const auto& pipeline = changed ? *changed : session_.pipeline();
  const RemoteUse use(session_);
  Notifier notifier(workspace_, pipeline, session_.store, session_.run_id, events_);
  options.notify_of_question = [&](std::string step, std::string question) {
    return notifier.send_question(std::move(step), std::move(question), observer_.cancel());
  };
  try {
    const auto outcome = workspace_.await(
        engine::run(session_.services(pipeline), events_, observer_.cancel(), options));
    notifier.send_end(observer_.cancel());
    return outcome;
  } catch (const core::EnvironmentError&) {
    // A signal stopped a download before the run began.
    if (is_in_cluster() || observer_.cancel().level() == core::StopLevel::none) throw;
    observer_.end();
    throw Interrupted();
  }
}

RunEnd RunDriver::conclude(const engine::RunSummary& outcome) {
  RunEnd end{.state = session_.store.folder(),
             .outcome = outcome,
             .results = {},
             .exit_code = exit_code_of(outcome)};
  if (is_in_cluster() || events_.steps <= many_steps || outcome.succeeded > 0)
    end.results = results_of(session_);
  if (log_) log_->add(summary_json(end));
  if (request_.background) request_.background->add(summary_json(end));
  return end;
}

}  // namespace pipeline::driver

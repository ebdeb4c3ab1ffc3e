// The driver in a cluster: continues a detached run, also after any loss of its pod.
#include <unistd.h>

#include <csignal>

#include "cli/commands.hpp"
#include "cli/display.hpp"
#include "cli/event_log.hpp"
#include "cli/notifications.hpp"
#include "cli/run_results.hpp"
#include "cli/session.hpp"
#include "core/diagnostic.hpp"
#include "core/log.hpp"
#include "core/user_environment.hpp"
#include "detached/driver_bucket.hpp"
#include "detached/held_lease.hpp"
#include "detached/invocation.hpp"
#include "detached/run_uploader.hpp"
#include "orchestrators/kubernetes/driver.hpp"

namespace pipeline::cli {
namespace {

/// Marks the run as failed. The driver's own output is not visible to the user, so the steps that
/// have not run get the reason.
void give_up(store::RunStore& store, store::RunRecord run, const std::string& why) {
  for (auto& step : store.runs().steps(run.id)) {
    if (step.status != StepStatus::pending && step.status != StepStatus::running) continue;
    step.status = StepStatus::failed;
    step.message = why;
    ++run.failed;
    store.runs().put_step(step);
  }
  run.status = RunStatus::failed;
  run.ended = std::chrono::time_point_cast<WallTime::duration>(WallTime::clock::now());
  store.runs().finish(run);
}

/// Reads secrets from the environment, even if the file names another source.
PipelineSpec pipeline_of(Session& session) {
  auto pipeline = session.pipeline();
  for (auto& step : pipeline.steps)
    for (auto& secret : step.secrets) secret.file.reset();
  for (std::size_t i = 0; i < pipeline.notify.size(); ++i)
    if (pipeline.notify[i].url.empty())
      pipeline.notify[i].url_variable = variable_of_notification(i);
  return pipeline;
}

void run_to_its_end(Context& context, const store::RunRecord& run,
                    detached::DetachedRecord& detached, core::CancelSource& cancel,
                    detached::RunUploader* uploader) {
  Session session(context, run.id, &detached);
  Display display(context, false);
  EventLog log(session.store, run.id);
  display.progress().record([&log](const Event& event) { log.add(event); });
  const core::CancelSource::Listener stop(
      cancel, [&](core::StopLevel level) { display.cancel().stop(level); });
  auto options = session.run_options();
  options.resume = true;
  options.git_commit = run.git_commit;
  options.git_dirty = run.git_dirty;
  options.is_task = session.source.is_task();
  options.driver = run.driver;
  if (uploader) options.wait_until_persisted = [uploader] { return uploader->keep(); };
  const auto pipeline = pipeline_of(session);
  const auto outcome = context.await(
      engine::run(session.services(pipeline), display.progress(), display.cancel(), options));
  send_notifications(context, pipeline, session.store, run.id, display.progress());
  const Summary summary{display.progress().model(), outcome, results_of(session), {}};
  log.add(summary_json(summary, exit_code_of(outcome)));
}

/// Returns the owners of a Lease that this process creates, so that it is garbage-collected however
/// this process ends; null if the run is to have no driver any more.
nlohmann::json owners_of(Context& context, const store::LeaseId& lease) {
  kubernetes_api::Client client(context.loop(),
                                kubernetes_api::find_cluster({.name_space = lease.name_space}));
  return context.await(orchestrators::kubernetes::owned_by_driver(client, lease.name));
}

/// Removes the driver's own Job, which ends this process; the last action.
core::ExitCode leave(const std::string& name_space, const std::string& name) {
  asio::io_context loop;
  kubernetes_api::Client client(loop, kubernetes_api::find_cluster({.name_space = name_space}));
  std::exception_ptr failed;
  asio::co_spawn(loop, orchestrators::kubernetes::remove_driver(client, name),
                 [&](std::exception_ptr error) { failed = error; });
  loop.run();
  if (failed) std::rethrow_exception(failed);
  return core::ExitCode::ok;
}

/// Drives the run while this process holds its Lease. A signal, which is sent to a pod that must
/// end and is replaced, hands the Lease on.
/// @param remote where the run is saved, if its driver shares no files with other machines
void drive_with_lease(Context& context, store::RunStore& store, store::RunRecord run,
                      detached::DetachedRecord& detached, nlohmann::json owners,
                      const std::optional<settings::RemoteStoreSettings>& remote) {
  core::CancelSource cancel;
  detached::HeldLease* held = nullptr;
  std::optional<blobs::RemoteArtifacts> artifacts;
  std::optional<detached::RunReplica> replica;
  std::optional<detached::RunUploader> uploader;
  asio::signal_set signals(context.loop(), SIGTERM, SIGINT, SIGHUP);
  signals.async_wait([&](boost::system::error_code error, int) {
    if (error) return;
    if (!held) ::_exit(static_cast<int>(core::ExitCode::interrupted));
    if (!uploader) held->hand_on();
    asio::co_spawn(context.loop(), uploader->keep(), [&](std::exception_ptr) { held->hand_on(); });
  });
  detached::HeldLease lease(
      context.driver_context(), cluster_of(context.options()), run.driver.lease.name,
      [&](const std::string& word) {
        core::log::info("stop: " + word);
        cancel.stop(word == "immediate" ? core::StopLevel::immediate : core::StopLevel::graceful);
      },
      std::move(owners));
  held = &lease;
  lease.guard(store);
  if (remote) {  // Saved once more, because no other process saves it now.
    artifacts.emplace(context.loop(), *remote);
    replica.emplace(*artifacts, run.id, core::variable(detached::files_variable));
    if (context.await(replica->take_over(store, store.paths().detached_folder(run.id))))
      uploader.emplace(context.loop(), *replica, store, [&lease] { lease.check(); });
  }
  run = store.runs().find(run.id).value_or(run);
  std::exception_ptr failed;
  if (run.status == RunStatus::running) {
    try {
      run_to_its_end(context, run, detached, cancel, uploader ? &*uploader : nullptr);
    } catch (const core::InputError& error) {
      give_up(store, run, error.what());
    } catch (...) {
      failed = std::current_exception();
    }
  }
  if (uploader) context.await(uploader->end());
  if (failed) std::rethrow_exception(failed);
  lease.is_done();
  held = nullptr;
}

}  // namespace

core::ExitCode drive_command(Context& outside) {
  const auto remote = detached::store_from_environment(outside.options().state);
  auto& store = remote ? outside.store(outside.options().state) : outside.existing_store();
  if (remote) {
    blobs::RemoteArtifacts artifacts(outside.loop(), *remote);
    const auto& run = outside.options().run;
    detached::RunReplica replica(artifacts, run, core::variable(detached::files_variable));
    if (!outside.await(replica.fetch(store, store.paths().detached_folder(run))))
      return leave({}, orchestrators::kubernetes::driver_name(run));
  }
  const auto run = outside.find_run(store);
  auto options = recorded_options(store, run.id, outside.options());
  auto detached = detached::detached_of(store, run.id);
  if (!options || !detached || !run.driver.is_elsewhere())
    throw core::InputError("run " + run.id + " was not handed to a driver in a cluster");
  options->context.clear();  // The context belongs to the machine that started the run.
  Context context(std::move(*options));
  const auto lease = run.driver.lease;
  auto owners = owners_of(context, lease);
  if (owners.is_null()) return core::ExitCode::ok;
  drive_with_lease(context, store, run, *detached, std::move(owners), remote);
  return leave(lease.name_space, lease.name);
}

}  // namespace pipeline::cli

#include "driver/cluster_driver.hpp"

#include <unistd.h>

#include <csignal>
#include <exception>
#include <optional>

#include "core/diagnostic.hpp"
#include "core/log.hpp"
#include "core/user_environment.hpp"
#include "driver/run_driver.hpp"
#include "orchestrators/kubernetes/driver.hpp"
#include "remote_driver/driver_store.hpp"
#include "remote_driver/held_lease.hpp"

namespace pipeline::driver {
namespace {

/// Marks the run as failed. The driver's own output is not visible to the user, so the reason
/// becomes the message of the steps that have not ended.
void give_up(store::RunStore& store, store::RunRecord run, const std::string& reason) {
  for (auto& step : store.runs().steps(run.id)) {
    if (step.status != StepStatus::pending && step.status != StepStatus::running) continue;
    step.status = StepStatus::failed;
    step.message = reason;
    ++run.failed;
    store.runs().put_step(step);
  }
  run.status = RunStatus::failed;
  run.ended = std::chrono::time_point_cast<WallTime::duration>(WallTime::clock::now());
  store.runs().finish(run);
}

/// Returns the owners of a Lease that this process creates, so that the Lease is garbage-collected
/// however this process ends; null if the run must not have a driver any more.
nlohmann::json owners_of(Workspace& workspace, const store::LeaseId& lease) {
  kubernetes_api::Client client(workspace.loop(),
                                kubernetes_api::find_cluster({.name_space = lease.name_space}));
  return workspace.await(orchestrators::kubernetes::owned_by_driver(client, lease.name));
}

/// Removes the driver's own Job, which ends this process. Called last.
void leave(const std::string& name_space, const std::string& name) {
  asio::io_context loop;
  kubernetes_api::Client client(loop, kubernetes_api::find_cluster({.name_space = name_space}));
  std::exception_ptr failed;
  asio::co_spawn(loop, orchestrators::kubernetes::remove_driver(client, name),
                 [&](std::exception_ptr error) { failed = error; });
  loop.run();
  if (failed) std::rethrow_exception(failed);
}

/// Drives a run while this process holds its Lease. On a signal, which a pod gets before it is
/// replaced, hands the Lease over.
class ClusterDriver {
 public:
  /// Acquires the Lease.
  ClusterDriver(Workspace& workspace, store::RunStore& store, const store::RunRecord& run,
                nlohmann::json owners);
  /// Saves the run to its remote store from now on; other machines do not share the driver's files.
  void save_to(const settings::RemoteStoreSettings& remote);
  void run(DetachedRecord& detached, RunObserver& observer);

 private:
  void hand_on_at_signal();
  std::exception_ptr drive(DetachedRecord& detached, RunObserver& observer);

  Workspace& workspace_;
  store::RunStore& store_;
  const std::string run_;
  core::CancelSource stop_;
  std::optional<blobs::RemoteArtifacts> artifacts_;
  std::optional<remote_driver::RunReplica> replica_;
  std::optional<remote_driver::RunUploader> uploader_;
  asio::signal_set signals_;
  std::optional<remote_driver::HeldLease> lease_;  ///< Last member, so that it is released first.
};

ClusterDriver::ClusterDriver(Workspace& workspace, store::RunStore& store,
                             const store::RunRecord& run, nlohmann::json owners)
    : workspace_(workspace),
      store_(store),
      run_(run.id),
      signals_(workspace.loop(), SIGTERM, SIGINT, SIGHUP) {
  hand_on_at_signal();
  const auto on_message = [this](const std::string& word) {
    core::log::info("stop: " + word);
    stop_.stop(word == "immediate" ? core::StopLevel::immediate : core::StopLevel::graceful);
  };
  lease_.emplace(workspace.driver_context(), cluster_of(workspace.options()), run.driver.lease.name,
                 on_message, std::move(owners));
  lease_->guard(store);  // Each commit now checks that the Lease is still held.
}

/// At a signal, saves the run and releases the Lease to the pod that replaces this one.
void ClusterDriver::hand_on_at_signal() {
  signals_.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    // Without the Lease, there is nothing to save or to hand over.
    if (!lease_) ::_exit(static_cast<int>(core::ExitCode::interrupted));
    if (!uploader_) lease_->hand_on();  // Ends this process.
    asio::co_spawn(workspace_.loop(), uploader_->save_now(),
                   [this](std::exception_ptr) { lease_->hand_on(); });
  });
}

void ClusterDriver::save_to(const settings::RemoteStoreSettings& remote) {
  artifacts_.emplace(workspace_.loop(), remote);
  replica_.emplace(*artifacts_, run_, core::variable(remote_driver::files_variable));
  // The replica is gone if another machine has retrieved the run: no later process reads it then.
  if (workspace_.await(replica_->take_over(store_, store_.paths().detached_folder(run_))))
    uploader_.emplace(workspace_.loop(), *replica_, store_, [this] { lease_->check(); });
}

void ClusterDriver::run(DetachedRecord& detached, RunObserver& observer) {
  const auto failed = drive(detached, observer);
  if (uploader_) workspace_.await(uploader_->end());
  if (failed) std::rethrow_exception(failed);
  lease_->record_end();
  lease_.reset();
}

/// Drives the run to its end. Returns the error if it did not come to an end, and another process
/// has to continue it; null otherwise.
std::exception_ptr ClusterDriver::drive(DetachedRecord& detached, RunObserver& observer) {
  const auto run = store_.runs().find(run_);
  if (!run || run->status != RunStatus::running) return {};
  try {
    RunDriver(workspace_,
              {.mode = RunMode::cluster,
               .run = run_,
               .detached = &detached,
               .uploader = uploader_ ? &*uploader_ : nullptr,
               .stop = &stop_},
              observer)
        .run();
  } catch (const core::InputError& error) {
    give_up(store_, *run, error.what());
  } catch (...) {
    return std::current_exception();
  }
  return {};
}

}  // namespace

void drive_in_cluster(Workspace& workspace, const std::string& name, RunObserver& observer) {
  const auto& state = workspace.options().state;
  const auto remote = remote_driver::store_from_environment(state);
  auto& store = remote ? workspace.store(state) : workspace.existing_store();
  if (remote) {
    blobs::RemoteArtifacts artifacts(workspace.loop(), *remote);
    remote_driver::RunReplica replica(artifacts, name,
                                      core::variable(remote_driver::files_variable));
    if (!workspace.await(replica.fetch(store, store.paths().detached_folder(name))))
      // The replica is gone: another machine has retrieved the run.
      return leave({}, orchestrators::kubernetes::driver_name(name));
  }
  const auto run = workspace.find_run(store, name);
  auto options = recorded_options(store, run.id, workspace.options());
  auto detached = detached_of(store, run.id);
  if (!options || !detached || !run.driver.has_lease())
    throw core::InputError("run " + run.id + " was not handed to a driver in a cluster");
  options->connection.erase("context");  // The context belongs to the machine that started the run.
  Workspace run_workspace(std::move(*options), workspace.notes());
  auto owners = owners_of(run_workspace, run.driver.lease);
  if (owners.is_null()) return;
  {
    ClusterDriver driver(run_workspace, store, run, std::move(owners));
    if (remote) driver.save_to(*remote);
    driver.run(*detached, observer);
  }
  leave(run.driver.lease.name_space, run.driver.lease.name);
}

}  // namespace pipeline::driver

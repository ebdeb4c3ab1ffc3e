#include "driver/drivers.hpp"

#include "async/retry_policy.hpp"
#include "async/sleep.hpp"
#include "core/diagnostic.hpp"
#include "driver/invocation.hpp"
#include "kubernetes_api/client.hpp"
#include "kubernetes_api/lease.hpp"
#include "orchestrators/kubernetes/driver.hpp"
#include "remote_driver/run_replica.hpp"

namespace pipeline::driver {
namespace {

/// An answer of a cluster, and the progress in a replica, are used again for this time.
constexpr std::chrono::seconds max_answer_age{3}, max_progress_age{1};
/// A command that only shows runs does not wait long for a cluster.
constexpr async::RetryPolicy quick_retries{.max_tries = 1};

/// Waits until the driver's pod is gone, because a driver whose pod is being deleted saves the run
/// once more. A pod that stays, for example on a lost node, saves nothing after the duration of its
/// Lease, so that is the longest wait.
async::Task<> wait_for_last_save(asio::io_context& loop, store::LeaseId lease) {
  kubernetes_api::Client client(loop, kubernetes_api::find_cluster(cluster_of(lease)));
  const auto until = std::chrono::steady_clock::now() + kubernetes_api::LeaseTerms().duration;
  while (std::chrono::steady_clock::now() < until) {
    const bool may_save = co_await orchestrators::kubernetes::driver_has_pod(client, lease.name);
    if (!may_save) co_return;
    co_await async::sleep(std::chrono::milliseconds(300), nullptr);
  }
}

}  // namespace

kubernetes_api::AccessOptions cluster_of(const store::LeaseId& lease) {
  return {.context = lease.context, .name_space = lease.name_space};
}

void require_own_job(const store::RunRecord& run) {
  if (run.driver.lease.name == orchestrators::kubernetes::driver_name(run.id)) return;
  throw core::InputError("run " + run.id + " names " + name_of(run.driver) +
                             " as its driver, and no run of this name has such a Job",
                         "nothing was changed there: somebody may have changed the state folder");
}

std::string name_of(const store::Driver& driver) {
  if (driver.has_lease())
    return "the Job " + driver.lease.name + " in the namespace " + driver.lease.name_space;
  auto name = "process " + std::to_string(driver.process.pid);
  if (driver.process.is_of_this_namespace()) return name;
  if (driver.process.is_of_this_boot()) name += " of another container";
  return name + (driver.host.empty() ? " of another machine" : " on the machine " + driver.host);
}

/// The replica to which the driver saves the run; empty if the driver shares the state folder.
struct Drivers::RemoteReplica {
  std::optional<blobs::RemoteArtifacts> artifacts;
  std::optional<remote_driver::RunReplica> replica;
  std::optional<Clock::time_point> asked;  ///< Time of the last download.
  bool is_reported = false;  ///< The user has been told that the replica does not respond.
};

Drivers::Drivers(remote_driver::DriverContext context, store::RunStore& store)
    : context_(std::move(context)), store_(store) {}
Drivers::~Drivers() = default;

Drivers::RemoteReplica& Drivers::replica_of(const store::RunRecord& run) {
  auto& known = replicas_[run.id];
  if (known) return *known;
  known = std::make_unique<RemoteReplica>();
  const auto options = invocation_of(store_, run.id);
  if (run.driver.has_lease() && options && options->remote_store.is_given()) {
    auto& artifacts = known->artifacts.emplace(
        context_.loop, options->remote_store,
        async::RetryPolicy{.first_pause = std::chrono::milliseconds(200), .max_tries = 2});
    known->replica.emplace(artifacts, run.id);
  }
  return *known;
}

void Drivers::update(store::RunRecord& run) {
  if (run.status == RunStatus::running && run.driver.has_lease() && replica_of(run).replica)
    liveness_of(run);
}

Drivers::Liveness Drivers::liveness_of(store::RunRecord& run) {
  const auto liveness = ask(run);
  download_progress(run, liveness == Liveness::dead);
  return liveness;
}

bool Drivers::goes_on(store::RunRecord& run) {
  if (run.status != RunStatus::running) return false;
  if (liveness_of(run) != Liveness::dead) return run.status == RunStatus::running;
  // The driver may have recorded the run's end since this record was read.
  run = store_.runs().find(run.id).value_or(run);
  return false;
}

/// Downloads the run's progress, unless that was done a moment ago.
/// @param is_gone the driver is dead: the progress is downloaded in any case
void Drivers::download_progress(store::RunRecord& run, bool is_gone) {
  auto& remote = replica_of(run);
  if (!remote.replica ||
      (!is_gone && remote.asked && Clock::now() - *remote.asked < max_progress_age))
    return;
  try {
    download(run, remote);
    // The end of a run is the last thing that is saved.
    if (run.status != RunStatus::running) context_.await(remote.replica->remove());
  } catch (const core::EnvironmentError& error) {
    if (!std::exchange(remote.is_reported, true))
      context_.note("note: the progress of run " + run.id + " cannot be read: " + error.what());
  }
  remote.asked = Clock::now();
}

void Drivers::download(store::RunRecord& run, RemoteReplica& remote) {
  context_.await(remote.replica->download(store_));
  run = store_.runs().find(run.id).value_or(run);
}

void Drivers::retrieve(store::RunRecord& run) {
  auto& remote = replica_of(run);
  if (!remote.replica) return;
  context_.await(wait_for_last_save(context_.loop, run.driver.lease));
  download(run, remote);
  context_.await(remote.replica->remove());
}

/// Returns the liveness of the driver: looks up its process, or asks its cluster.
Drivers::Liveness Drivers::ask(const store::RunRecord& run) {
  if (!run.driver.has_lease()) {
    const auto liveness = store_.drivers().liveness(run);
    if (liveness == Liveness::unknown)
      why_unknown_ =
          "it runs on another machine or in another container, and this machine sees no heartbeat "
          "of it";
    return liveness;
  }
  const auto now = Clock::now();
  if (const auto known = answers_.find(run.id);
      known != answers_.end() && now - known->second.asked < max_answer_age) {
    why_unknown_ = known->second.why_unknown;
    return known->second.liveness;
  }
  const auto& lease = run.driver.lease;
  const std::pair cluster(lease.context, lease.name_space);
  if (const auto silent = silent_clusters_.find(cluster);
      silent != silent_clusters_.end() && now - silent->second.asked < max_answer_age) {
    why_unknown_ = silent->second.error;
    return Liveness::unknown;
  }
  auto liveness = Liveness::unknown;
  try {
    kubernetes_api::Client client(context_.loop, kubernetes_api::find_cluster(cluster_of(lease)),
                                  quick_retries);
    liveness = context_.await(orchestrators::kubernetes::driver_continues(client, lease.name))
                   ? Liveness::alive
                   : Liveness::dead;
  } catch (const core::EnvironmentError& error) {
    why_unknown_ = error.what();
  } catch (const core::InputError& error) {
    why_unknown_ = error.diagnostics().front().message;
  }
  const bool is_unknown = liveness == Liveness::unknown;
  if (is_unknown) silent_clusters_[cluster] = {Clock::now(), why_unknown_};
  answers_[run.id] = {liveness, Clock::now(), is_unknown ? why_unknown_ : std::string()};
  return liveness;
}

core::EnvironmentError Drivers::liveness_error(const store::RunRecord& run) const {
  const auto& pipe = context_.program;
  return core::EnvironmentError(
      "it is not known whether the driver of run " + run.id + " is alive, " + name_of(run.driver) +
          ": " + why_unknown_,
      {"look for the driver there; if it runs, `" + pipe + " cancel " + run.id + "` stops it there",
       "if the driver is gone, `" + pipe + " cancel " + run.id +
           " --force` records that here; then the run can be resumed or removed"});
}

std::string Drivers::describe(store::RunRecord& run) {
  const auto& lease = run.driver.lease;
  auto text = name_of(run.driver) + (lease.context.empty() ? "" : " of context " + lease.context);
  if (liveness_of(run) == Liveness::unknown) return text + ": " + why_unknown_;
  try {
    kubernetes_api::Client client(context_.loop, kubernetes_api::find_cluster(cluster_of(lease)),
                                  quick_retries);
    const auto status =
        context_.await(orchestrators::kubernetes::driver_status_of(client, lease.name));
    if (!status.goes_on)
      text += ", which is gone; `" + context_.program + " resume " + run.id +
              "` continues the run from here";
    else if (!status.holder.empty())
      text += ", its pod " + status.holder;
    else if (!status.waits_for.empty())
      text += ": " + status.waits_for;
    else if (!status.failure.empty())
      text += ", whose last pod failed: " + status.failure;
  } catch (const core::EnvironmentError& error) {
    text += std::string(": ") + error.what();
  }
  return text;
}

}  // namespace pipeline::driver

#include "driver/cancellation.hpp"

#include <poll.h>
extern "C" {  // glibc 2.36 omits extern "C" in this header.
#include <sys/pidfd.h>
}

#include <cerrno>
#include <filesystem>
#include <string>

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "driver/drivers.hpp"
#include "driver/recovery.hpp"
#include "driver/session.hpp"
#include "orchestrators/kubernetes/driver.hpp"
#include "remote_driver/held_lease.hpp"

namespace pipeline::driver {
namespace {

using Clock = std::chrono::steady_clock;

/// Longest time without a sign of the driver. A living driver renews its Lease many times in this
/// time, and a lost pod is replaced.
constexpr std::chrono::seconds max_silence{30};

void send_signal(const core::Descriptor& process, int signal, const store::RunRecord& run) {
  if (::pidfd_send_signal(process.get(), signal, nullptr, 0) != 0 && errno != ESRCH)
    throw core::system_error("cannot stop process " + std::to_string(run.driver.process.pid) +
                                 ", which drives run " + run.id,
                             errno);
}

void announce_stop(const Workspace& workspace, const CancelRequest& wanted,
                   const store::RunRecord& run) {
  workspace.note("run " + run.id + " is stopping" +
                 (wanted.now ? "" : "; `--now` kills its steps at once"));
}

/// Returns true if the process has the state folder's database or locks open, as a driver has: the
/// record in a folder that somebody else has made may name any process of the user's.
bool has_open(const std::filesystem::path& state, long pid) {
  std::error_code error;
  std::filesystem::directory_iterator file("/proc/" + std::to_string(pid) + "/fd", error);
  for (; !error && file != std::filesystem::directory_iterator(); file.increment(error))
    for (const char* name : {"pipe.db", "locks"}) {
      std::error_code gone;
      if (std::filesystem::equivalent(file->path(), state / name, gone)) return true;
    }
  return false;
}

/// Stops the process that drives the run, and waits for its end. Returns false if there is no such
/// process.
bool stop_process(const Workspace& workspace, const CancelRequest& wanted, store::RunStore& store,
                  const store::RunRecord& run) {
  if (!run.driver.process.is_of_this_namespace()) {
    if (store.drivers().liveness(run) == store::Liveness::dead) return false;
    throw core::InputError(
        "run " + run.id + " is still running: " + name_of(run.driver) +
            " drives it, which cannot be stopped from here",
        "`" + workspace.options().name + " cancel " + run.id + "` stops it there");
  }
  // The descriptor is opened before the check, so that it cannot be another process that got the
  // same number since.
  const core::Descriptor process(::pidfd_open(static_cast<pid_t>(run.driver.process.pid), 0));
  if (!process || !run.driver.process.is_alive()) return false;
  if (!has_open(store.folder(), static_cast<long>(run.driver.process.pid)))
    throw core::InputError("run " + run.id + " names process " +
                               std::to_string(run.driver.process.pid) +
                               " as its driver, which has not opened this state folder",
                           "nothing was stopped: somebody may have changed the state folder");
  // Neither signal makes the driver give up, however often the command is repeated.
  send_signal(process, wanted.now ? stop_at_once : SIGTERM, run);
  announce_stop(workspace, wanted, run);
  pollfd ended{process.get(), POLLIN, 0};
  while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
  return true;
}

/// Writes the request into the Lease, where a driver that replaces a lost one finds it, too. Then
/// waits for the end of the run. Returns false if no driver has stopped the run.
bool stop_driver(Workspace& workspace, const CancelRequest& wanted, Drivers& drivers,
                 store::RunRecord run) {
  auto& store = workspace.existing_store();
  require_own_job(run);
  const auto lease = run.driver.lease;
  kubernetes_api::Client client(workspace.loop(), kubernetes_api::find_cluster(cluster_of(lease)));
  if (workspace.await(orchestrators::kubernetes::driver_continues(client, lease.name))) {
    auto owners = workspace.await(orchestrators::kubernetes::owned_by_driver(client, lease.name));
    workspace.await(kubernetes_api::leave_message(
        client, lease.name, wanted.now ? "immediate" : "graceful", std::move(owners)));
    announce_stop(workspace, wanted, run);
  }
  std::string last_sign;
  for (auto since = Clock::now(); Clock::now() - since < max_silence;) {
    const auto now = store.runs().find(run.id);
    if (!now) return true;
    run = *now;
    const bool goes_on = drivers.goes_on(run);
    if (run.status != RunStatus::running) return true;
    if (!goes_on) break;
    const auto holder = workspace.await(kubernetes_api::holder_of(client, lease.name));
    if (auto sign = holder.name + " " + holder.renewed; sign != last_sign) {
      last_sign = std::move(sign);
      since = Clock::now();
    }
    ::poll(nullptr, 0, 300);  // Sleeps for 300 ms.
  }
  // The driver's pod, if it exists, releases the Lease.
  workspace.await(orchestrators::kubernetes::remove_driver(client, lease.name));
  auto options = recorded_options(store, run.id, workspace.options()).value_or(workspace.options());
  Workspace with_cluster(std::move(options), workspace.notes());
  remote_driver::HeldLease held(with_cluster.driver_context(), cluster_of(with_cluster.options()),
                                lease.name);
  held.record_end();
  drivers.retrieve(run);
  const auto now = store.runs().find(run.id);
  if (!now || now->status != RunStatus::running)
    return true;  // The run ended just before it could be cancelled.
  recover_dead_runs(workspace, store, {}, run.id);
  return false;
}

}  // namespace

CancelledRun cancel_run(Workspace& workspace, const std::string& name,
                        const CancelRequest& wanted) {
  auto& store = workspace.existing_store();
  Drivers drivers(workspace.driver_context(), store);
  auto run = find_run(workspace, name, drivers, store);
  if (run.status != RunStatus::running)
    throw core::InputError("run " + run.id +
                           " has already ended: " + std::string(to_string(run.status)));

  const bool is_unknown = drivers.liveness_of(run) == Drivers::Liveness::unknown;
  const bool is_forced = is_unknown && wanted.force;
  if (is_unknown && !is_forced && !run.driver.has_lease()) throw drivers.liveness_error(run);
  bool is_stopped = false;
  if (!is_forced)
    is_stopped = run.driver.has_lease() ? stop_driver(workspace, wanted, drivers, run)
                                        : stop_process(workspace, wanted, store, run);
  const std::string driver = run.driver.has_lease() ? "its driver" : "its process";
  recover_dead_runs(workspace, store, {}, is_forced ? run.id : "");
  return {store.runs().find(run.id).value_or(run),
          is_stopped ? "stopped" : driver + " was gone; its remains have been removed"};
}

}  // namespace pipeline::driver

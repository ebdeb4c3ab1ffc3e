#include "driver/recovery.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <tuple>

#include "blobs/remote_artifacts.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "driver/detached_record.hpp"
#include "driver/session.hpp"

namespace pipeline::driver {
namespace {

enum class OnFailure { report, ignore };

/// Removes the attempts' folders of a run unless the run has a driver.
void remove_work_folder(const Workspace& workspace, store::RunStore& store, const std::string& id,
                        OnFailure on_failure) {
  const auto held = store.drivers().hold(id);  // Prevents the run from being resumed meanwhile.
  const auto run = store.runs().find(id);
  if (!held || (run && run->id == id && run->status == RunStatus::running)) return;
  try {
    store.paths().remove(store.paths().work_folder(id));
  } catch (const core::EnvironmentError& error) {
    if (on_failure == OnFailure::report) workspace.note(std::string("note: ") + error.what());
  }
}

/// Returns the runs that have folders of attempts and are not running. Such runs are left by a
/// driver that is killed while it recovers them.
std::vector<store::RunRecord> half_recovered(store::RunStore& store) {
  std::vector<store::RunRecord> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(store.folder() / "work", none)) {
    const auto id = entry.path().filename().string();
    auto run = store.runs().find(id);
    if (run && run->id == id && run->status != RunStatus::running) found.push_back(std::move(*run));
  }
  return found;
}

/// A new run does not wait long for a remote store that only an earlier run has used.
constexpr async::RetryPolicy few_retries{.first_pause = std::chrono::milliseconds(200),
                                         .max_tries = 3};

/// How a dead run used an orchestrator.
struct OrchestratorUse {
  settings::RemoteStoreSettings remote_store;
  std::string run;
};

/// The orchestrators as dead runs used them. The key has the orchestrator's name, the service that
/// it was connected to, the owner of the objects that it started there, and the address of the
/// remote store.
using UsedOrchestrators =
    std::map<std::tuple<std::string, StringMap, std::string, std::string>, OrchestratorUse>;

/// Adds the orchestrators that the run used.
/// @param caller options for a run that recorded none
void add_used(store::RunStore& store, const store::RunRecord& run, const Invocation& caller,
              UsedOrchestrators& used) {
  const auto invocation = invocation_of(store, run.id).value_or(caller);
  const auto detached = detached_of(store, run.id);
  std::istringstream names(run.orchestrator);  // For example `local, kubernetes`.
  for (std::string name; std::getline(names >> std::ws, name, ',');)
    // The remains of a C++ program's executor are not known.
    if (const auto* entry = orchestrators::find_entry(name))
      used.try_emplace({name, orchestrators::service_of(*entry, invocation.connection),
                        detached ? detached->owner : "", invocation.remote_store.url},
                       OrchestratorUse{invocation.remote_store, run.id});
}

/// Returns the arguments of the command that removes the remains later. A resumed run removes at
/// its end what all dead runs have left with its orchestrators; `pipe clean` visits engines only.
std::string later_removal(const std::string& orchestrator, const std::string& run) {
  return orchestrators::traits_of(orchestrator).runs_on_engine ? "clean --containers"
                                                               : "resume " + run;
}

}  // namespace

void remove_left_by(const std::vector<store::RunRecord>& runs, Workspace& workspace,
                    store::RunStore& store, const std::string& resumed, const std::string& own) {
  UsedOrchestrators used;
  for (const auto& run : runs) add_used(store, run, workspace.options(), used);
  for (const auto& [key, use] : used) {
    const auto& [name, connection, owner, url] = key;
    const auto report = [&, &orchestrator = name, &run = use.run](const std::string& why) {
      workspace.note("note: cannot remove the remains of an interrupted run: " + why + "; `" +
                     workspace.options().name + " " + later_removal(orchestrator, run) +
                     "` does it later");
    };
    try {
      const auto artifacts =
          url.empty() ? nullptr
                      : std::make_unique<blobs::RemoteArtifacts>(
                            workspace.loop(), use.remote_store, few_retries, &workspace.run_stop());
      const auto orchestrator = make_orchestrator(workspace, name,
                                                  {.state = store.folder(),
                                                   .connection = connection,
                                                   .artifacts = artifacts.get(),
                                                   .owner = owner});
      const bool can_join = orchestrator->capabilities().outlives_driver;
      // Returns true for a run whose objects stay.
      workspace.await(orchestrator->remove_orphans([&](const std::string& id) {
        if (id == own) return true;
        if (id == resumed) return can_join;
        const auto run = store.runs().find(id);
        return run && run->status == RunStatus::running;
      }));
    } catch (const core::EnvironmentError& error) {
      report(error.what());
    } catch (const core::InputError& error) {
      // The kubeconfig may no longer have the cluster. Later commands must not fail for that
      // reason.
      report(error.diagnostics().front().message);
    }
  }
}

std::vector<store::RunRecord> recover_dead_runs(Workspace& workspace, store::RunStore& store,
                                                const std::string& resumed,
                                                const std::string& known_dead) {
  store.require_writable();
  auto before = half_recovered(store);
  auto dead = store.runs().mark_dead(known_dead);
  auto all = before;
  all.insert(all.end(), dead.begin(), dead.end());
  remove_left_by(all, workspace, store, resumed);
  // Comes last, because half_recovered() finds by this folder a run that was not recovered
  // completely. Failures for such a run have been reported before.
  for (const auto& run : before)
    if (run.id != resumed) remove_work_folder(workspace, store, run.id, OnFailure::ignore);
  for (const auto& run : dead)
    if (run.id != resumed) remove_work_folder(workspace, store, run.id, OnFailure::report);
  return dead;
}

}  // namespace pipeline::driver

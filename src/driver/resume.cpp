#include "driver/resume.hpp"

#include "core/diagnostic.hpp"
#include "driver/drivers.hpp"
#include "remote_driver/held_lease.hpp"

namespace pipeline::driver {
namespace {

/// Returns a command of this program as messages show it, in backquotes.
std::string command(const Workspace& workspace, const std::string& words) {
  return "`" + workspace.options().name + " " + words + "`";
}

void refuse_ended(const Workspace& workspace, const store::RunRecord& run) {
  if (run.status != RunStatus::running && run.status != RunStatus::interrupted)
    throw core::InputError(
        "run " + run.id + " has ended: " + std::string(to_string(run.status)),
        command(workspace, "run") + " runs the steps that did not succeed or have changed");
}

void refuse_driven(const Workspace& workspace, Drivers& drivers, store::RunRecord& run) {
  if (!drivers.goes_on(run)) return;
  if (drivers.liveness_of(run) == Drivers::Liveness::unknown) throw drivers.liveness_error(run);
  throw core::InputError(
      "run " + run.id + " is still running: " + name_of(run.driver) + " drives it",
      command(workspace, "logs " + run.id + " STEP -f") + " follows it");
}

}  // namespace

RunEnd resume_run(Workspace& workspace, const std::string& name, RunObserver& observer,
                  Background* background) {
  auto& store = workspace.existing_store();
  Drivers drivers(workspace.driver_context(), store);
  auto run = find_run(workspace, name, drivers, store);
  if (background && run.driver.has_lease())
    throw core::InputError(
        "run " + run.id + " was handed to a cluster, and can only be continued at a terminal",
        "leave out --detach");
  refuse_driven(workspace, drivers, run);
  refuse_ended(workspace, run);
  auto options = recorded_options(store, run.id, workspace.options());
  if (!options)
    throw core::InputError("run " + run.id + " did not record its options",
                           command(workspace, "run") + " reuses its results");
  Workspace run_workspace(std::move(*options), workspace.notes());
  auto detached = detached_of(store, run.id);
  RunRequest request{.mode = detached ? RunMode::take_over : RunMode::resume,
                     .run = run.id,
                     .detached = detached ? &*detached : nullptr,
                     .background = background};
  if (!detached || !run.driver.has_lease())
    return RunDriver(run_workspace, std::move(request), observer).run();
  require_own_job(run);
  remote_driver::HeldLease lease(run_workspace.driver_context(),
                                 cluster_of(run_workspace.options()), run.driver.lease.name);
  drivers.retrieve(run);
  refuse_ended(workspace, run);
  const auto end = RunDriver(run_workspace, std::move(request), observer).run();
  lease.record_end();
  return end;
}

}  // namespace pipeline::driver

/// @file
/// Recovery from dead drivers: marks their runs as interrupted, and removes the remains of these
/// runs on this machine, on engines and on clusters.
#pragma once

#include <string>
#include <vector>

#include "driver/workspace.hpp"
#include "store/run_store.hpp"

namespace pipeline::driver {

/// Marks runs whose driver has died as interrupted, removes their remains outside the run store,
/// and returns them. Reports remains that cannot be removed, and clusters that do not respond.
/// Throws EnvironmentError if the store is read-only.
/// @param resumed the run to resume, whose attempts in progress stay
/// @param known_dead a run whose driver is dead, whatever DriverLocks::liveness() returns
std::vector<store::RunRecord> recover_dead_runs(Workspace& workspace, store::RunStore& store,
                                                const std::string& resumed = {},
                                                const std::string& known_dead = {});

/// Removes what the runs, whose drivers are dead, have left with their orchestrators. An engine may
/// create a container after its driver has died and the run has been recovered, so the run that has
/// recovered others calls this once more at its end.
/// @param resumed as for recover_dead_runs()
/// @param own the caller's run, which is left alone: its attempts are removed already, and the
/// process that watches over its attempts on this machine lives as long as this process
void remove_left_by(const std::vector<store::RunRecord>& runs, Workspace& workspace,
                    store::RunStore& store, const std::string& resumed = {},
                    const std::string& own = {});

}  // namespace pipeline::driver

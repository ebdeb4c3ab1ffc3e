/// @file
/// Recovery from drivers that have died: their runs are marked as interrupted, and what these left
/// on this machine, on engines and on clusters is removed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "detached/driver_context.hpp"
#include "detached/invocation.hpp"
#include "orchestrators/factory.hpp"
#include "store/run_store.hpp"

namespace pipeline::detached {

using MakeOrchestrator = std::function<std::unique_ptr<orchestrators::Orchestrator>(
    const std::string& name, orchestrators::OrchestratorOptions options)>;

/// Marks runs whose driver has died as interrupted, and removes what they left outside the run
/// store. What cannot be removed, and a cluster that does not answer, is a note. Returns these
/// runs.
/// @param caller stands in for the invocation of a run that has none recorded
/// @param resumed the run that is to be resumed: what can be joined of it stays
/// @param gone a run that is driven elsewhere, and whose driver is known to be dead
std::vector<store::RunRecord> recover_dead_runs(const DriverContext& context, store::RunStore& runs,
                                                const Invocation& caller,
                                                const MakeOrchestrator& make_orchestrator,
                                                const std::string& resumed = {},
                                                const std::string& gone = {});

}  // namespace pipeline::detached

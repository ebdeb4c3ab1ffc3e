/// @file
/// Recovery from dead drivers: marks their runs as interrupted, and removes what these left on this
/// machine, on engines and on clusters.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "detached/driver_context.hpp"
#include "detached/invocation.hpp"
#include "orchestrators/options.hpp"
#include "orchestrators/orchestrator.hpp"
#include "store/run_store.hpp"

namespace pipeline::detached {

using MakeOrchestrator = std::function<std::unique_ptr<orchestrators::Orchestrator>(
    const std::string& name, orchestrators::OrchestratorOptions options)>;

/// Marks runs whose driver has died as interrupted, removes what they left outside the run store,
/// and returns them. Reports what cannot be removed, and clusters that do not respond. Throws
/// EnvironmentError if the store may only be read.
/// @param caller used instead of the invocation of a run that has none recorded
/// @param resumed the run to resume: its attempts that can be joined stay
/// @param gone a detached run whose driver is known to be dead
std::vector<store::RunRecord> recover_dead_runs(const DriverContext& context,
                                                store::RunStore& store, const Invocation& caller,
                                                const MakeOrchestrator& make_orchestrator,
                                                const std::string& resumed = {},
                                                const std::string& gone = {});

}  // namespace pipeline::detached

/// @file
/// Checks the GPUs before a process starts.
#pragma once

#include <optional>

#include "orchestrators/orchestrator.hpp"
#include "orchestrators/processes/process.hpp"

namespace pipeline::orchestrators::local {

/// Runs the `nvidia-smi` on the step's PATH with the step's variables, and writes the table that it
/// prints to the step's log, once for each node. Returns a failure if the step must not start.
async::Task<std::optional<Failure>> look_at_gpus(const Attempt& attempt,
                                                 const StringMap& environment,
                                                 processes::ProcessReaper& reaper);

}  // namespace pipeline::orchestrators::local

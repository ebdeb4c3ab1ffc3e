/// @file
/// How long jobs would wait, as Slurm estimates (`sbatch --test-only`).
#pragma once

#include <string>
#include <vector>

#include "orchestrators/orchestrator.hpp"
#include "orchestrators/slurm/client.hpp"

namespace pipeline::orchestrators::slurm {

/// Returns a text for each of the steps whose wait is known: Slurm is asked once for each
/// combination of options, about few of them, and no more once it has been silent for seconds.
async::Task<std::vector<std::string>> forecast_waits(Client& client, const StringMap& connection,
                                                     std::vector<const StepSpec*> steps);

}  // namespace pipeline::orchestrators::slurm

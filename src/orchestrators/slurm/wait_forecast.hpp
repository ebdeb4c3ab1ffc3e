/// @file
/// How long jobs would wait, as Slurm estimates (`sbatch --test-only`).
#pragma once

#include <string>
#include <vector>

#include "orchestrators/orchestrator.hpp"
#include "orchestrators/slurm/client.hpp"

namespace pipeline::orchestrators::slurm {

/// Returns a text for each of the steps whose wait is known. Asks Slurm once for each combination
/// of options, for a few combinations at most, and stops after a question without an answer.
async::Task<std::vector<std::string>> forecast_waits(Client& client, const StringMap& connection,
                                                     std::vector<const StepSpec*> steps);

}  // namespace pipeline::orchestrators::slurm

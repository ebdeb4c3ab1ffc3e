/// @file
/// Runs commands beside the step of a running job.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "orchestrators/attempts.hpp"
#include "orchestrators/slurm/client.hpp"

namespace pipeline::orchestrators::slurm {

/// Returns the command of Slurm that runs the shell's words in the step's job, with its variables
/// and in its folder. Returns no words if the job does not run, or its step runs in a container.
/// @param agent  the agent as a file that the nodes see
/// @param folder the folder of the run's jobs
async::Task<std::vector<std::string>> command_beside(Client& client, std::filesystem::path agent,
                                                     std::filesystem::path folder,
                                                     RunningProcess process, ShellRequest shell);

}  // namespace pipeline::orchestrators::slurm

/// @file
/// Writes the files of a job that contain a step's variables and secrets.
#pragma once

#include <filesystem>

#include "orchestrators/slurm/job_run.hpp"

namespace pipeline::orchestrators::slurm {

/// Makes a folder for secrets, which only this user can read.
void make_private_folder(const std::filesystem::path& folder);

/// Writes the variables of the step, some of which are secrets.
void write_variables(JobContext& context, const Attempt& attempt,
                     const processes::Workspace& workspace, const std::filesystem::path& file);

/// Writes the files that the job needs to run the attempt in its image. Returns the container that
/// the job has to start.
async::Task<ContainerStart> write_container(JobContext& context, const Attempt& attempt,
                                            const JobPaths& paths,
                                            const processes::Workspace& workspace);

}  // namespace pipeline::orchestrators::slurm

/// @file
/// Begins a job of a cluster whose batch scripts are shell scripts (Slurm): claims the job, removes
/// what the step must not see, and becomes the job's script.
#pragma once

namespace pipeline::agent {

/// `pipe-agent job JOBS EVENTS NAME`, or with `--list FILE` in place of the name: it is the line of
/// the file that the task of an array has the number of. Makes JOBS/NAME/claim and writes
/// EVENTS/NAME.begun, unsets all variables but Slurm's, makes a temporary folder, and executes
/// JOBS/NAME/script with its path in PIPE_TEMPORARY, and the PATH of
/// before in PIPE_PATH, where Slurm's commands may be. Does all that in one process, because a
/// shell would start eight. Returns an exit code if it cannot; 0 if another job has the claim,
/// because Slurm may start a job twice, and a lost answer of sbatch may have been a second job.
int begin_job(char** arguments, int count);

}  // namespace pipeline::agent

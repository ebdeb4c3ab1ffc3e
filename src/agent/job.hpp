/// @file
/// Begins a job of a cluster whose batch scripts are shell scripts (Slurm): claims the job, removes
/// what the step must not see, and becomes the job's script.
#pragma once

namespace pipeline::agent {

/// Executes `pipe-agent job JOBS EVENTS NAME`; `arguments` begin with JOBS. With `--list FILE` in
/// place of NAME, task N of a job array reads its name from line N of the file, counted from 0.
///
/// Makes the folder JOBS/NAME/claim, which only one job can make, and writes EVENTS/NAME.begun for
/// the driver. Unsets all variables but Slurm's, makes a temporary folder, and executes
/// JOBS/NAME/script. The script gets the temporary folder's path as PIPE_TEMPORARY, and the earlier
/// PATH, where Slurm's commands may be, as PIPE_PATH. All of this takes one process; a shell would
/// start eight.
/// @return 1 if a file cannot be used; 2 for wrong arguments; 0 if another job has made the claim:
/// Slurm may start a job twice, and a driver that loses sbatch's answer submits the job again
int begin_job(char** arguments, int count);

}  // namespace pipeline::agent

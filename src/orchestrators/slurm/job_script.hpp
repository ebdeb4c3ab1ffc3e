/// @file
/// The texts that a job consists of: its name, the options of sbatch, and the script. Pure.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orchestrators/orchestrator.hpp"
#include "orchestrators/slurm/container_runtime.hpp"

namespace pipeline::orchestrators::slurm {

/// The files of a job on the shared file system.
struct JobPaths {
  std::filesystem::path folder;  ///< Folder of this job, which only its user can read.
  std::filesystem::path events;  ///< The run's folder of the files begun() and ended() of all jobs.
  std::string name;              ///< The job's name, unique in the run; a valid name of a file.

  /// Shell commands that set the step's variables.
  std::filesystem::path variables() const { return folder / "variables"; }
  /// The agent's frames of the step's output (agent/frames.hpp).
  std::filesystem::path log() const { return folder / "log"; }
  /// The job's number; missing for a task of an array.
  std::filesystem::path id() const { return folder / "id"; }
  /// Slurm's own output for the job.
  std::filesystem::path output() const { return folder / "slurm.out"; }
  std::filesystem::path script() const { return folder / "script"; }
  /// Names the array that the job is a task of, and the task's number; missing for a single job.
  std::filesystem::path array() const { return folder / "array"; }
  /// Has the process number of the agent in the step's container; missing without a container.
  std::filesystem::path container_process() const { return folder / "process"; }
  /// Exists once the script has begun, and names the job and its node.
  std::filesystem::path begun() const { return events / (name + begun_suffix); }
  /// Exists once the step has ended, and has the agent's status (job_status.hpp).
  std::filesystem::path ended() const { return events / (name + ended_suffix); }

  static constexpr const char *begun_suffix = ".begun", *ended_suffix = ".ended";
};

/// The files of an array on the shared file system.
struct ArrayPaths {
  std::filesystem::path folder;

  std::filesystem::path list() const { return folder / "list"; }  ///< A job's name in each line.
  std::filesystem::path id() const { return folder / "id"; }      ///< The array's number.
  /// Slurm's own output of a task. @param task its number, or `%a` for sbatch
  std::filesystem::path output(const std::string& task) const { return folder / ("out-" + task); }
};

/// Returns `pipe-RUN-STEP-ATTEMPT`, with a digest in place of a step's name that cannot be part of
/// a file's name.
std::string job_name(const std::string& run, const std::string& step, unsigned number);

/// Returns the comment of the jobs of a run, by which a later driver finds them.
std::string job_comment(const std::string& owner, const std::string& run);
/// Returns the run in a comment of this owner; nothing for another comment.
std::optional<std::string> run_of_comment(std::string_view comment, std::string_view owner);

/// Returns the options of sbatch that users choose, such as `--partition=gpu`: the step's values,
/// else those of the profile.
/// @param connection fields of the profile, with sbatch's names
std::vector<std::string> chosen_options(const SlurmSettings& step, StringMap connection);

/// Returns the time limit that the step's jobs ask for; nothing if the partition's limit applies.
std::optional<std::chrono::minutes> time_limit(const StepSpec& step);

/// Returns the option of sbatch and srun for the CPUs of each task, rounded up; nothing if the step
/// does not ask for any.
std::optional<std::string> cpus_option(const ResourceSettings& resources);

/// Returns the options of sbatch and srun for the job's CPUs, memory, GPUs and time.
/// @param connection fields of the profile, with sbatch's names
/// @param gres_types the types of GPUs that the cluster has
std::vector<std::string> resource_options(const AttemptSpec& attempt, const StringMap& connection,
                                          const std::vector<std::string>& gres_types);

/// Returns the command that runs sbatch with only the variables that Slurm and the C library read,
/// so that no secret of the user reaches the job or the controller's folder.
std::vector<std::string> sbatch_command(const std::vector<std::string>& options);

/// Returns the command that runs squeue or scancel without the user's defaults for it, by which it
/// would see fewer jobs (SQUEUE_PARTITION) or ask questions (SCANCEL_INTERACTIVE).
std::vector<std::string> queue_command(const std::vector<std::string>& words);

/// Returns the options of sbatch, except the job's name and files. Jobs with equal options can be
/// submitted as one array.
/// @param gres_types the types of GPUs that the cluster has
std::vector<std::string> job_options(const AttemptSpec& attempt, const std::string& owner,
                                     const StringMap& connection,
                                     const std::vector<std::string>& gres_types);

/// Returns the cluster's type of GPUs for a model's name, such as `a100` for `A100`; nothing if no
/// type matches.
std::optional<std::string> gres_type_of(const std::string& model,
                                        const std::vector<std::string>& types);

/// Returns the shell commands that set the variables, whose values may be secrets.
std::string variables_text(const StringMap& variables);

/// Returns the agent's options for a step with `stalled_after`; none for other steps.
std::vector<std::string> stall_options(const AttemptSpec& attempt);

/// Returns the script of a job, in which the agent starts the command. batch_script() executes it.
std::string job_script(const JobPaths& paths, const std::filesystem::path& agent,
                       const std::vector<std::string>& agent_options, const std::string& folder,
                       const std::vector<std::string>& command);

/// Returns the script of a job that starts a container, in which the agent starts the command.
std::string container_script(const JobPaths& paths, const ContainerStart& start);

/// Returns the script that sbatch gets. In it, the agent records that the job has begun, and then
/// executes paths.script(). If Slurm starts the job a second time, the script ends at once.
/// @param list file with the names of an array's jobs, one for each task; empty for a single job
std::string batch_script(const std::filesystem::path& agent, const JobPaths& paths,
                         const std::filesystem::path& list = {});

/// Return the script of a shell on a node, and in a container. shell_command() executes it.
std::string shell_script(const JobPaths& paths, const std::string& folder,
                         const std::vector<std::string>& words);
std::string container_shell_script(const ContainerStart& start);

/// Returns the command that runs the attempt's shell as a job, with the streams of this process. In
/// the job, the agent executes paths.script().
std::vector<std::string> shell_command(const AttemptSpec& attempt,
                                       const std::filesystem::path& agent, const JobPaths& paths,
                                       const StringMap& connection,
                                       const std::vector<std::string>& gres_types);

}  // namespace pipeline::orchestrators::slurm

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
  std::filesystem::path folder;  ///< Of this job alone, for its user alone.
  std::filesystem::path events;  ///< Of the run: files that say what has happened to jobs.
  std::string name;              ///< The job's name, unique in the run; a valid name of a file.

  std::filesystem::path variables() const { return folder / "variables"; }
  std::filesystem::path log() const { return folder / "log"; }
  std::filesystem::path id() const { return folder / "id"; }
  std::filesystem::path output() const { return folder / "slurm.out"; }
  std::filesystem::path script() const { return folder / "script"; }
  /// Names the array that the job is a task of, and the task's number; not there for a job alone.
  std::filesystem::path array() const { return folder / "array"; }
  /// Has the number of the agent in the step's container; not there without one.
  std::filesystem::path container_process() const { return folder / "process"; }
  /// Exists once the script has begun, and names the job and its node.
  std::filesystem::path begun() const { return events / (name + begun_suffix); }
  /// Exists once the step has ended: the agent's status.
  std::filesystem::path ended() const { return events / (name + ended_suffix); }

  static constexpr const char *begun_suffix = ".begun", *ended_suffix = ".ended";
};

/// The files of an array on the shared file system.
struct ArrayPaths {
  std::filesystem::path folder;

  std::filesystem::path list() const { return folder / "list"; }  ///< A job's name in each line.
  std::filesystem::path id() const { return folder / "id"; }
  /// Slurm's own output of a task. @param task its number, or `%a` for sbatch
  std::filesystem::path output(const std::string& task) const { return folder / ("out-" + task); }
};

/// Returns `pipe-RUN-STEP-ATTEMPT`, with a digest in place of what no file name may have.
std::string job_name(const std::string& run, const std::string& step, unsigned number);

/// Returns the comment of the jobs of a run, by which a later driver knows them.
std::string job_comment(const std::string& owner, const std::string& run);
/// Returns the run in a comment of this owner; nothing for another comment.
std::optional<std::string> run_of_comment(std::string_view comment, std::string_view owner);

/// Returns the words of sbatch that users choose, `--partition=gpu`: the step's, else those of the
/// profile.
/// @param connection fields of the profile, with sbatch's names
std::vector<std::string> chosen_options(const SlurmSettings& step, StringMap connection);

/// Returns Slurm's limit of the step's jobs; nothing: the partition's.
std::optional<std::chrono::minutes> time_limit(const StepSpec& step);

/// Returns the option of sbatch and srun for the CPUs of each task, rounded up; nothing if the step
/// does not ask for any.
std::optional<std::string> cpus_option(const ResourceSettings& resources);

/// Returns the options of sbatch and srun that say what the job gets.
/// @param connection fields of the profile, with sbatch's names
/// @param gres_types the types of GPUs that the cluster has
std::vector<std::string> resource_options(const AttemptSpec& attempt, const StringMap& connection,
                                          const std::vector<std::string>& gres_types);

/// Returns the command that runs sbatch with those variables alone that Slurm and the C library
/// read, so that no secret of the user's reaches the job or the controller's folder.
std::vector<std::string> sbatch_command(const std::vector<std::string>& options);

/// Returns the options of sbatch, but for the job's name and files: jobs with the same ones can be
/// an array.
/// @param gres_types the types of GPUs that the cluster has
std::vector<std::string> job_options(const AttemptSpec& attempt, const std::string& owner,
                                     const StringMap& connection,
                                     const std::vector<std::string>& gres_types);

/// Returns the type of GPUs that a model's words mean, such as `a100` for `A100`: nothing if none
/// does.
std::optional<std::string> gres_type_of(const std::string& model,
                                        const std::vector<std::string>& types);

/// Returns the shell commands that set the variables, whose values may be secrets.
std::string variables_text(const StringMap& variables);

/// Returns the options of the agent of a step that can stall; none for others.
std::vector<std::string> stall_options(const AttemptSpec& attempt);

/// Returns the script of a job, which starts the command below the agent. batch_script() begins it.
std::string job_script(const JobPaths& paths, const std::filesystem::path& agent,
                       const std::vector<std::string>& agent_options, const std::string& folder,
                       const std::vector<std::string>& command);

/// Likewise, which runs the container, whose command is the agent.
std::string container_script(const JobPaths& paths, const ContainerStart& start);

/// Returns the script that sbatch gets: the agent begins the job once, and becomes paths.script().
/// A job that Slurm starts again ends at once.
/// @param list the jobs of an array, of which each task becomes one; empty for a job alone
std::string batch_script(const std::filesystem::path& agent, const JobPaths& paths,
                         const std::filesystem::path& list = {});

/// Returns the script of a shell, and of one in a container. shell_command() begins it.
std::string shell_script(const JobPaths& paths, const std::string& folder,
                         const std::vector<std::string>& words);
std::string container_shell_script(const ContainerStart& start);

/// Returns the command that runs the attempt's shell as a job, with the streams of this process:
/// the agent becomes paths.script().
std::vector<std::string> shell_command(const AttemptSpec& attempt,
                                       const std::filesystem::path& agent, const JobPaths& paths,
                                       const StringMap& connection,
                                       const std::vector<std::string>& gres_types);

}  // namespace pipeline::orchestrators::slurm

/// @file
/// An attempt of a step as a job: from its files to its end.
#pragma once

#include <filesystem>
#include <map>

#include "orchestrators/agent_reports.hpp"
#include "orchestrators/orchestrator.hpp"
#include "orchestrators/processes/host_environments.hpp"
#include "orchestrators/processes/workspace.hpp"
#include "orchestrators/removals.hpp"
#include "orchestrators/slurm/client.hpp"
#include "orchestrators/slurm/gang_job.hpp"
#include "orchestrators/slurm/image_files.hpp"
#include "orchestrators/slurm/job_monitor.hpp"
#include "orchestrators/slurm/job_script.hpp"
#include "orchestrators/slurm/submitter.hpp"

namespace pipeline::orchestrators::slurm {

/// The objects and settings that the jobs of a run share.
struct JobContext {
  Client& client;
  JobMonitor& monitor;
  Submitter& submitter;
  processes::HostEnvironments& environments;
  processes::ShortFolders& short_folders;
  Removals& removals;
  std::filesystem::path agent;   ///< The agent's program, on the nodes.
  std::filesystem::path folder;  ///< Folder of the files of the run's jobs.
  std::string owner;     ///< See owner_of(): identifies user and state folder in jobs' comments.
  StringMap connection;  ///< The profile's fields, with sbatch's names, such as `partition`.
  std::vector<std::string> gres_types;
  ImageFiles* images = nullptr;               ///< Null: no step runs in an image.
  std::string container_runtime;              ///< See ContainerStart::runtime.
  std::map<std::string, GangJob> gangs = {};  ///< Jobs of steps with nodes, keyed by name.
  unsigned uses = 0;                          ///< Number of living Use objects.

  bool runs_in_image(const StepSpec& step) const { return images && names_image(step); }
};

/// Counts the coroutines that use a JobContext, which is destroyed only when there are none.
class Use {
 public:
  explicit Use(JobContext& context) : context_(context) { ++context_.uses; }
  ~Use() { --context_.uses; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  JobContext& context_;
};

/// Returns the files of a job below the folder of its run.
JobPaths paths_of(const std::filesystem::path& folder, const std::string& name);

/// Runs the attempt to its end, or joins the job that a dead driver has submitted for it.
/// @param report kept up to date with the agent's reports
async::Task<AttemptResult> run_job(JobContext& context, const Attempt& attempt,
                                   AgentReport& report);

/// Runs the attempt's shell as a job of its own, with the streams of this process.
async::Task<AttemptResult> run_shell(JobContext& context, const Attempt& attempt);

/// Runs a command of Slurm with the streams of this process. Returns its exit code.
int run_on_streams(const LoginNode& login, const std::vector<std::string>& command,
                   bool has_terminal);

/// Cancels all jobs of this name; there are several if a submission was repeated because its answer
/// was lost. Returns when none of them runs, or after a minute.
async::Task<> end_jobs_of(Client& client, JobPaths paths);

/// Removes the files of a job.
void remove_files(const JobPaths& paths);

}  // namespace pipeline::orchestrators::slurm

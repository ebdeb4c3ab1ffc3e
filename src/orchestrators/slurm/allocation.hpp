/// @file
/// Runs steps as job steps (srun) of the Slurm job that this process runs in: `within: allocation`
/// of a profile.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <pipeline/settings.hpp>

#include "orchestrators/slurm/client.hpp"

namespace pipeline::orchestrators::slurm {

/// Returns `srun` and those of sbatch's options that srun has and the allocation has not decided.
/// Pure.
std::vector<std::string> srun_words(const std::vector<std::string>& options);
/// Returns the command that starts a job step with sbatch's options and script. Pure.
std::vector<std::string> srun_command(const std::vector<std::string>& options,
                                      const std::string& script);

/// A process of srun that `pipe` has started. The process waits until the allocation has room for
/// its job step, and then for the step's end.
struct StepProcess {
  std::string id;             ///< The process's number, which is used like a job's number.
  std::string name, comment;  ///< Its options --job-name and --comment.
};

/// Returns the processes of srun on this machine that `pipe` has started.
/// @param proc where procfs is mounted
std::vector<StepProcess> step_processes(const std::filesystem::path& proc = "/proc");

/// Starts job steps of the job that this process is in, in place of jobs. The job steps are found
/// by their processes of srun, which outlive a driver that is killed, so that a later driver on the
/// same node can join them.
class AllocationClient : public Client {
 public:
  /// Throws EnvironmentError outside of a job.
  AllocationClient();
  async::Task<std::string> submit(std::vector<std::string> options, std::string script) override;
  async::Task<std::string> refusal(std::vector<std::string> options) override;
  async::Task<std::optional<std::chrono::seconds>> expected_wait(
      std::vector<std::string> options) override;
  async::Task<std::vector<QueuedJob>> jobs() override;
  async::Task<std::vector<QueuedJob>> jobs_named(std::string name) override;
  async::Task<std::vector<QueuedJob>> jobs_of_user() override;
  async::Task<> cancel_all(std::vector<std::string> ids, std::vector<std::string> options) override;
  /// Returns limits without arrays, because srun has none.
  async::Task<ArrayLimits> limits() override;

 private:
  async::Task<std::vector<QueuedJob>> begun_steps();
  std::string job_;  ///< The number of the job that this process is in.
};

/// Returns the client that the profile asks for: one that submits jobs, or an AllocationClient.
/// Throws InputError for values of the profile that exclude each other.
std::unique_ptr<Client> client_of(const StringMap& connection);

}  // namespace pipeline::orchestrators::slurm

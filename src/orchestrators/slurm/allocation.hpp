/// @file
/// Steps of the Slurm job that this process runs in: `within: allocation` of a profile.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <pipeline/settings.hpp>

#include "orchestrators/slurm/client.hpp"

namespace pipeline::orchestrators::slurm {

/// Returns srun with those of sbatch's options that it has, and that an allocation has not decided.
/// Pure.
std::vector<std::string> srun_words(const std::vector<std::string>& options);
/// Returns the command that starts a step of this job with sbatch's options and script. Pure.
std::vector<std::string> srun_command(const std::vector<std::string>& options,
                                      const std::string& script);

/// An srun of `pipe`, which waits until the allocation has room for its step, and then for its end.
struct StepProcess {
  std::string id;             ///< The number of srun's process, which stands for a job's number.
  std::string name, comment;  ///< Those of its options.
};

/// Returns the sruns among the processes of this machine.
/// @param proc replaced in tests
std::vector<StepProcess> step_processes(const std::filesystem::path& proc = "/proc");

/// Starts steps of the job that this process is in, where the others submit jobs. They are known by
/// the processes of their sruns, which outlive a driver that is killed; a later driver joins them
/// on the same node.
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
  /// An allocation has no arrays.
  async::Task<ArrayLimits> limits() override;

 private:
  async::Task<std::vector<QueuedJob>> steps();
  std::string job_;
};

/// Returns what submits steps: as jobs, or within this process's job. Throws InputError for values
/// of the profile that exclude each other.
std::unique_ptr<Client> client_of(const StringMap& connection);

}  // namespace pipeline::orchestrators::slurm

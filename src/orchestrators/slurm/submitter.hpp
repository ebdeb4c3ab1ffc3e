/// @file
/// Submits jobs. Jobs that are ready at the same time and have equal options are submitted as one
/// array.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "async/semaphore.hpp"
#include "orchestrators/slurm/client.hpp"
#include "orchestrators/slurm/job_script.hpp"

namespace pipeline::orchestrators::slurm {

/// A job that is ready to be submitted.
struct Submission {
  JobPaths paths;  ///< JobPaths::folder exists.
  std::vector<std::string> options;
  std::string script;                ///< See job_script().
  std::function<bool()> is_stopped;  ///< Returns true once the job is not wanted any more.
  /// Called with the reason once Slurm has refused the job for a while; perhaps several times.
  std::function<void(const std::string&)> on_delay;
};

/// A job as Slurm knows it.
struct SubmittedJob {
  std::string id;    ///< `4711`, or `4711_3` for a task of an array. Empty: there is no job.
  std::string name;  ///< The name of the job, or of its array.
};

/// Returns a job's name and number from its files; without a number if it may not have been
/// submitted.
SubmittedJob recorded_job(const JobPaths& paths);

/// Returns the jobs that Slurm has under the name of this job, or this task of its array.
async::Task<std::vector<QueuedJob>> jobs_of(Client& client, JobPaths paths);

/// Returns the number of the job that was submitted for these files; empty if there is none.
async::Task<std::string> find_submitted(Client& client, JobPaths paths);

/// Returns sbatch's option for the file of a job's own output, in whose name Slurm does not replace
/// `%j` and the like.
std::string option_of_output(const std::filesystem::path& file);

/// Returns the file with Slurm's own output of the job.
std::filesystem::path slurm_output(const JobPaths& paths);

class Submitter {
 public:
  /// @param folder the folder of the run's jobs
  /// @param agent the agent's program, on the nodes
  /// @param patience how long a submission may fail before `on_delay` is called
  Submitter(Client& client, std::filesystem::path folder, std::filesystem::path agent,
            const ArrayLimits& limits,
            std::chrono::milliseconds patience = std::chrono::seconds(30));

  /// Submits a job, and records its number in its files. Returns the job, without a number if it
  /// was stopped before. If Slurm's answer is lost, looks for the job by its name before it is
  /// submitted again. Throws SlurmError.
  async::Task<SubmittedJob> submit(Submission submission);

 private:
  /// Jobs that one sbatch submits. The submit() calls of these jobs share the batch.
  struct Batch;

  async::Task<> gather(Batch& batch);
  async::Task<> send(Batch& batch);
  async::Task<std::string> send_until_known(Batch& batch, std::vector<std::string> options,
                                            std::string script);

  bool divide(Batch& batch);

  static constexpr unsigned max_sending = 4;
  Client& client_;
  std::filesystem::path folder_, agent_;
  const std::size_t max_array_tasks_;  ///< By the cluster's limits.
  std::size_t max_tasks_;  ///< Fewer than `max_array_tasks_` after the user's limit was exceeded.
  std::chrono::milliseconds patience_;
  async::Semaphore sending_slots_{max_sending};
  /// The batches that still accept jobs, keyed by the jobs' options.
  std::map<std::vector<std::string>, std::shared_ptr<Batch>> open_;
};

}  // namespace pipeline::orchestrators::slurm

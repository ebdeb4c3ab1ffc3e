/// @file
/// The job of a gang, that is, of all processes of an attempt of a step with nodes: one job for all
/// nodes, in which srun starts a task on each.
#pragma once

#include <exception>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/gate.hpp"
#include "orchestrators/attempts.hpp"
#include "orchestrators/slurm/submitter.hpp"

namespace pipeline::orchestrators::slurm {

struct JobContext;

/// The state that the run_job() calls for an attempt's nodes share. Each call writes the files that
/// srun's task on its node reads. The call for node 0 finds the job that a dead driver has
/// submitted, or else submits one once all calls have written their files.
struct GangJob {
  explicit GangJob(const asio::any_io_executor& executor)
      : is_known(executor), are_ready(executor), is_submitted(executor) {}
  async::Gate is_known;      ///< A dead driver's job was looked for; `job` has its number, if any.
  async::Gate are_ready;     ///< All calls have written their files.
  async::Gate is_submitted;  ///< `job` has its number, unless the job was refused or stopped.
  unsigned ready_calls = 0;  ///< Number of calls that have written their files.
  SubmittedJob job;
  std::optional<Failure> refusal;
  bool has_error = false;  ///< A call has ended with an exception.

  /// Opens all gates after an exception, so that no call waits for the one that has failed.
  void fail();
};

/// Returns the paths of a node's files, which lie beside those of the job.
JobPaths node_paths(const JobPaths& job, unsigned node);

/// Returns srun and its options for a job step of an allocation; no words for a job of its own.
std::vector<std::string> gang_step(const JobContext& context, const AttemptSpec& attempt);

/// Returns the job's script, in which srun starts on each node that node's script. Node 0 is the
/// one on which the job's script runs, except in an allocation.
/// @param step the words of gang_step()
std::string gang_script(const JobPaths& job, const std::filesystem::path& agent,
                        const AttemptSpec& attempt, const std::vector<std::string>& step);

/// Returns the name of the attempt's job.
std::string job_name_of(const AttemptSpec& attempt);

/// Replaces the nodes' addresses by marks such as `{node0}`, which the agents fill in when they
/// meet (agent/ranks.hpp), and adds the secret by which the agents know one another.
void connect_gang(const AttemptSpec& attempt, NodeAddresses& addresses);

/// For an attempt with nodes, adds the variables that only a node's agent reads. Removes
/// CUDA_VISIBLE_DEVICES, so that Slurm's value remains; the agent gives each process a part of it.
void add_gang_variables(const AttemptSpec& attempt, StringMap& variables);

/// Returns the names of jobs whose nodes have files in the folder of a run.
std::set<std::string> gangs_in(const std::filesystem::path& folder);

/// Removes the files of the job and of all its nodes.
void remove_gang_files(const JobPaths& job);

}  // namespace pipeline::orchestrators::slurm

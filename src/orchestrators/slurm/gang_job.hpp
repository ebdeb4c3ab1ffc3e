/// @file
/// The one job of all nodes of a step with nodes.
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

struct JobPlace;

/// Shared by the runs of an attempt's nodes. Each has files of its own, which srun's task on its
/// node reads; that of node 0 looks for the job of a dead driver, or submits one once all have
/// their files.
struct GangJob {
  explicit GangJob(const asio::any_io_executor& executor)
      : is_known(executor), are_ready(executor), is_submitted(executor) {}
  async::Gate is_known;      ///< Whether a dead driver's job is there: `job` has its number.
  async::Gate are_ready;     ///< All runs have their files.
  async::Gate is_submitted;  ///< `job` has its number, unless the job was refused or stopped.
  unsigned ready = 0;
  SubmittedJob job;
  std::optional<Failure> refused;
  bool has_error = false;  ///< A run has ended with an exception.

  /// Lets none wait for a run that has ended with an exception.
  void fail();
};

/// Returns the files of a node's processes beside those of the job.
JobPaths node_paths(const JobPaths& job, unsigned node);

/// Returns srun and its options for a step of an allocation; nothing for a job of its own.
std::vector<std::string> gang_step(const JobPlace& place, const AttemptSpec& attempt);

/// Returns the script of the job, in which srun starts the script of each node on it. Node 0 is
/// the one on which the job's script runs, but for a step of an allocation.
/// @param step of gang_step()
std::string gang_script(const JobPaths& job, const std::filesystem::path& agent,
                        const AttemptSpec& attempt, const std::vector<std::string>& step);

/// Returns the name of the attempt's job.
std::string name_of(const AttemptSpec& attempt);

/// Lets the agents of the nodes find the addresses when they meet (agent/ranks.hpp).
void connect_gang(const AttemptSpec& attempt, NodeAddresses& addresses);

/// Adds what the agent of a node takes for itself, for an attempt with `nodes`. Slurm's
/// CUDA_VISIBLE_DEVICES stands: of it the agent gives each process a part.
void add_gang_variables(const AttemptSpec& attempt, StringMap& variables);

/// Returns the names of jobs whose nodes have files in the folder of a run.
std::set<std::string> gangs_in(const std::filesystem::path& folder);

/// Removes the files of the job and of all its nodes.
void remove_gang_files(const JobPaths& job);

}  // namespace pipeline::orchestrators::slurm

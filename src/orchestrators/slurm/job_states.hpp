/// @file
/// The states of Slurm's jobs, and the failure that each of them means for a step. docs/slurm.md
/// has the table.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <pipeline/events.hpp>

#include "core/cancel.hpp"

namespace pipeline::orchestrators::slurm {

enum class JobPhase { waiting, running, ended };

struct JobState {
  std::string_view name;  ///< As squeue prints it with `%T`.
  JobPhase phase;
  /// Kind and message of the failure if the job ends in this state, and the agent has not recorded
  /// how the step ended.
  FailureKind kind = FailureKind::infrastructure;
  std::string_view message = {};
  std::string_view hint = {};  ///< May be empty.
  /// This state says why Slurm killed the step, so the agent's record would add nothing.
  bool explains = false;
};

/// Returns all states that Slurm's manual names.
std::span<const JobState> job_states();
/// Returns null for a state that is not in the table.
const JobState* find_state(std::string_view name);

/// The knowledge about a job at one moment.
struct JobView {
  bool has_begun = false;  ///< The job's script has begun on its node.
  bool has_ended = false;  ///< The agent has recorded how the step ended.
  std::string state;       ///< The state in squeue's last answer; empty before the first answer.
  std::string node = {};   ///< The node on which Slurm has started the job; empty: not started.
  bool is_gone = false;    ///< The last answer does not list the job.
  std::string node_reason = {};  ///< Why the node is drained; empty: not drained, or not known.
  core::StopLevel wanted = core::StopLevel::none;  ///< How the run wants the job to be stopped.
  std::chrono::seconds since_change{};             ///< Since `state` or `is_gone` changed.
  std::chrono::seconds without_answer{};           ///< Since squeue answered last.
};

enum class JobAction {
  wait,
  end,     ///< Stop watching: the step's end is recorded, or the run has stopped the job.
  give_up  ///< Stop watching: the job is lost, and failure_of_job() is the step's failure.
};

/// Decides whether to go on watching the job. Pure.
JobAction next_action(const JobView& view);

/// Returns true if Slurm has given the job's place to another job.
bool was_preempted(const JobView& view);

/// Returns the failure of a step whose end the agent has not recorded.
Failure failure_of_job(const JobView& view, const std::string& job);

}  // namespace pipeline::orchestrators::slurm

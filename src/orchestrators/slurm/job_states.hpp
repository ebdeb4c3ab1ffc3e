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
  /// The failure of a step whose job has ended in this state before the step's own end was known.
  FailureKind kind = FailureKind::infrastructure;
  std::string_view message = {};
  std::string_view hint = {};  ///< May be empty.
  /// The state alone explains the end of a step that was killed.
  bool explains = false;
};

/// Returns all states that Slurm's manual names.
std::span<const JobState> job_states();
/// Returns null for a state that is not in the table.
const JobState* find_state(std::string_view name);

/// All that is known of a job at one moment.
struct JobView {
  bool has_begun = false;  ///< The job's script has begun on its node.
  bool has_ended = false;  ///< The agent has written the step's end.
  std::string state;       ///< The state in squeue's last answer; empty before the first answer.
  std::string node = {};   ///< Where Slurm has started the job; empty: nowhere.
  bool is_gone = false;    ///< The last answer does not list the job.
  std::string node_reason = {};  ///< Why the node is drained; empty: it is not, or nobody asked.
  core::StopLevel wanted = core::StopLevel::none;
  std::chrono::seconds since_change{};    ///< Since `state` or `is_gone` changed.
  std::chrono::seconds without_answer{};  ///< Since squeue answered last.
};

enum class JobAction {
  wait,
  end,     ///< The step's end is known, or no longer expected because it was stopped.
  give_up  ///< The step's end will not be known.
};

/// Decides whether there is more to wait for. Pure.
JobAction next_action(const JobView& view);

/// Returns the failure of a step whose end is not known.
Failure failure_of_job(const JobView& view, const std::string& job);

}  // namespace pipeline::orchestrators::slurm

#include "orchestrators/slurm/job_states.hpp"

#include <algorithm>

#include "orchestrators/retry_advice.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

using enum JobPhase;
using namespace std::chrono_literals;

constexpr std::string_view shared_paths_hint =
    "the nodes must see the state folder and the cache of virtual environments at the same paths "
    "as this machine";

constexpr std::string_view preempted = "PREEMPTED";
constexpr auto environment = FailureKind::environment;
constexpr auto infrastructure = FailureKind::infrastructure;

/// The table. A state without a message has no failure, because its job has not ended.
constexpr JobState all_states[] = {
    {.name = "PENDING", .phase = waiting},
    {.name = "CONFIGURING", .phase = waiting},
    {.name = "REQUEUED", .phase = waiting},
    {.name = "REQUEUE_FED", .phase = waiting},
    {.name = "REQUEUE_HOLD", .phase = waiting},
    {.name = "RESV_DEL_HOLD", .phase = waiting},
    {.name = "SPECIAL_EXIT", .phase = waiting},
    {.name = "POWER_UP_NODE", .phase = waiting},
    {.name = "RUNNING", .phase = running},
    {.name = "COMPLETING", .phase = running},
    {.name = "RESIZING", .phase = running},
    {.name = "SIGNALING", .phase = running},
    {.name = "STAGE_OUT", .phase = running},
    {.name = "STOPPED", .phase = running},
    {.name = "SUSPENDED", .phase = running},
    {.name = "UPDATE_DB", .phase = running},
    {.name = "COMPLETED",
     .phase = ended,
     .kind = infrastructure,
     .message = "ended in Slurm, but the agent on its node did not record the step's end",
     .hint = shared_paths_hint},
    {.name = "FAILED",
     .phase = ended,
     .kind = infrastructure,
     .message = "failed in Slurm before the agent on its node recorded the step's end",
     .hint = shared_paths_hint},
    {.name = "CANCELLED",
     .phase = ended,
     .kind = environment,
     .message = "was cancelled in Slurm by another user or program (scancel)",
     .explains = true},
    {.name = "TIMEOUT",
     .phase = ended,
     .kind = FailureKind::timed_out,
     .message = "reached the time limit of its Slurm job",
     .hint = "raise the step's `timeout`, or take a partition with a longer limit",
     .explains = true},
    {.name = "DEADLINE",
     .phase = ended,
     .kind = FailureKind::timed_out,
     .message = "missed the deadline of its Slurm job",
     .explains = true},
    {.name = "OUT_OF_MEMORY",
     .phase = ended,
     .kind = FailureKind::out_of_memory,
     .message = "was killed because it used more memory than its Slurm job has",
     .hint = "raise `resources.memory`, or let the step hold less at a time",
     .explains = true},
    {.name = "NODE_FAIL",
     .phase = ended,
     .kind = infrastructure,
     .message = "was lost with its node",
     .hint = retry_advice,
     .explains = true},
    {.name = preempted,
     .phase = ended,
     .kind = infrastructure,
     .message = "was preempted by a job of higher priority",
     .hint = retry_advice,
     .explains = true},
    {.name = "BOOT_FAIL",
     .phase = ended,
     .kind = infrastructure,
     .message = "could not start: its node did not boot",
     .hint = retry_advice,
     .explains = true},
    {.name = "LAUNCH_FAILED",
     .phase = ended,
     .kind = infrastructure,
     .message = "could not be started on its node",
     .hint = retry_advice,
     .explains = true},
    {.name = "RECONFIG_FAIL",
     .phase = ended,
     .kind = infrastructure,
     .message = "could not start: its node was not configured",
     .hint = retry_advice,
     .explains = true},
    {.name = "REVOKED",
     .phase = ended,
     .kind = infrastructure,
     .message = "was revoked: another cluster of the federation runs it",
     .hint = retry_advice,
     .explains = true},
};

/// How long to wait for the agent's record after the job has ended: a shared file system shows a
/// file to other machines later. The wait is shorter if Slurm's state explains the failure, and
/// shortest if the run has stopped the job.
constexpr auto max_record_delay = 60s, max_record_delay_if_explained = 10s,
               max_record_delay_if_stopped = 5s;
/// How long Slurm's controller may be silent, before and after the job's script has begun.
constexpr std::chrono::seconds max_silence_before_begin = 10min, max_silence_after_begin = 24h;

}  // namespace

std::span<const JobState> job_states() { return all_states; }

const JobState* find_state(std::string_view name) {
  const auto found = std::ranges::find(all_states, name, &JobState::name);
  return found == std::end(all_states) ? nullptr : found;
}

JobAction next_action(const JobView& view) {
  if (view.has_ended) return JobAction::end;
  const auto* state = find_state(view.state);
  const bool job_has_ended = view.is_gone || (state && state->phase == ended);
  if (job_has_ended && view.wanted != core::StopLevel::none) {
    // The agent of a job that was stopped gracefully may still record the step's end.
    const bool may_be_recorded = view.has_begun && view.wanted != core::StopLevel::immediate &&
                                 view.since_change < max_record_delay_if_stopped;
    return may_be_recorded ? JobAction::wait : JobAction::end;
  }
  if (job_has_ended) {
    const bool is_explained = state && state->explains && !view.is_gone;
    const auto max_delay = is_explained ? max_record_delay_if_explained : max_record_delay;
    if (view.since_change >= max_delay) return JobAction::give_up;
  }
  const auto max_silence = view.has_begun ? max_silence_after_begin : max_silence_before_begin;
  return view.without_answer >= max_silence ? JobAction::give_up : JobAction::wait;
}

bool was_preempted(const JobView& view) { return !view.is_gone && view.state == preempted; }

Failure failure_of_job(const JobView& view, const std::string& job) {
  const auto* state = view.is_gone ? nullptr : find_state(view.state);
  // A node cancels a job that it cannot start, for example because its spool folder is full.
  if (view.state == "CANCELLED" && !view.is_gone && !view.has_begun && !view.node.empty())
    return {
        infrastructure,
        "was cancelled in Slurm before its script began on " + view.node,
        {"run `scontrol show node " + view.node + "`, which may say why the node starts no jobs",
         std::string(retry_advice)},
        {}};
  // A controller that was killed before it had saved the begin of a job starts the job again. The
  // node refuses the second start. Slurm then ends both and drains the node.
  if (view.state == "CANCELLED" && !view.is_gone &&
      view.node_reason.find("Duplicate jobid") != std::string::npos)
    return {
        infrastructure,
        "was cancelled by Slurm, whose restarted controller had started it twice",
        {std::string(retry_advice),
         "Slurm has drained " + view.node + ", and gives it no more jobs: run `scontrol update " +
             "nodename=" + view.node + " state=resume` to put the node back into service"},
        {}};
  if (state && state->phase == ended) {
    Failure failure{state->kind, std::string(state->message), {}, {}};
    if (!state->hint.empty()) failure.hints.emplace_back(state->hint);
    failure.details.push_back("Slurm's job " + job + ": " + view.state);
    return failure;
  }
  if (state && state->phase == waiting && view.has_ended)
    return {infrastructure,
            "was stopped: Slurm has put its job back into the queue (scontrol requeue)",
            {std::string(retry_advice)},
            {"Slurm's job " + job + ": " + view.state}};
  if (view.is_gone)
    return {infrastructure,
            "is lost: Slurm does not know its job " + job +
                " any more, and its node did not write "
                "the step's end",
            {std::string(retry_advice)},
            {}};
  return {infrastructure,
          "is lost: Slurm's controller does not answer, and the step's end was not written",
          {"run `scontrol ping` to see whether the controller answers", std::string(retry_advice)},
          {}};
}

}  // namespace pipeline::orchestrators::slurm

#include "orchestrators/slurm/job_states.hpp"

#include <algorithm>

namespace pipeline::orchestrators::slurm {
namespace {

using enum JobPhase;
using namespace std::chrono_literals;

constexpr std::string_view is_lost =
    "the nodes must see the state folder and the cache of virtual environments at the paths that "
    "they have here";
constexpr std::string_view is_retried =
    "a step is retried as often as `retry.max_infrastructure_retries` says";

constexpr auto environment = FailureKind::environment;
constexpr auto infrastructure = FailureKind::infrastructure;

constexpr JobState all_states[] = {
    {"PENDING", waiting},
    {"CONFIGURING", waiting},
    {"REQUEUED", waiting},
    {"REQUEUE_FED", waiting},
    {"REQUEUE_HOLD", waiting},
    {"RESV_DEL_HOLD", waiting},
    {"SPECIAL_EXIT", waiting},
    {"POWER_UP_NODE", waiting},
    {"RUNNING", running},
    {"COMPLETING", running},
    {"RESIZING", running},
    {"SIGNALING", running},
    {"STAGE_OUT", running},
    {"STOPPED", running},
    {"SUSPENDED", running},
    {"UPDATE_DB", running},
    {"COMPLETED", ended, infrastructure, "ended, but its node did not write the step's end",
     is_lost},
    {"FAILED", ended, infrastructure, "failed before the step's end was written", is_lost},
    {"CANCELLED", ended, environment, "was cancelled in Slurm by another user or program (scancel)",
     "", true},
    {"TIMEOUT", ended, FailureKind::timed_out, "reached the time limit of its Slurm job",
     "raise the step's `timeout`, or take a partition with a longer limit", true},
    {"DEADLINE", ended, FailureKind::timed_out, "missed the deadline of its Slurm job", "", true},
    {"OUT_OF_MEMORY", ended, FailureKind::out_of_memory,
     "was killed because it used more memory than its Slurm job has",
     "raise `resources.memory`, or reduce the step's memory use", true},
    {"NODE_FAIL", ended, infrastructure, "was lost with its node", is_retried, true},
    {"PREEMPTED", ended, infrastructure, "was preempted by a job of higher priority", is_retried,
     true},
    {"BOOT_FAIL", ended, infrastructure, "could not start: its node did not boot", is_retried,
     true},
    {"LAUNCH_FAILED", ended, infrastructure, "could not be started on its node", is_retried, true},
    {"RECONFIG_FAIL", ended, infrastructure, "could not start: its node was not configured",
     is_retried, true},
    {"REVOKED", ended, infrastructure, "was revoked: another cluster of the federation runs it",
     is_retried, true},
};

/// How long the step's end may be on its way: file systems show it to other machines later.
constexpr auto time_for_end = 60s, time_for_explained_end = 10s, time_after_stop = 5s;
/// How long Slurm may be silent.
constexpr std::chrono::seconds silence_before_begin = 10min, silence_after_begin = 24h;

}  // namespace

std::span<const JobState> job_states() { return all_states; }

const JobState* find_state(std::string_view name) {
  const auto found = std::ranges::find(all_states, name, &JobState::name);
  return found == std::end(all_states) ? nullptr : found;
}

JobAction next_action(const JobView& view) {
  if (view.has_ended) return JobAction::end;
  const auto* state = find_state(view.state);
  const bool is_over = view.is_gone || (state && state->phase == ended);
  if (is_over && view.wanted != core::StopLevel::none)
    return !view.has_begun || view.wanted == core::StopLevel::immediate ||
                   view.since_change >= time_after_stop
               ? JobAction::end
               : JobAction::wait;
  const auto time =
      state && state->explains && !view.is_gone ? time_for_explained_end : time_for_end;
  if (is_over && view.since_change >= time) return JobAction::give_up;
  const auto silence = view.has_begun ? silence_after_begin : silence_before_begin;
  return view.without_answer >= silence ? JobAction::give_up : JobAction::wait;
}

Failure failure_of_job(const JobView& view, const std::string& job) {
  const auto* state = view.is_gone ? nullptr : find_state(view.state);
  // A node that cannot start a job, such as one whose spool is full, cancels it.
  if (view.state == "CANCELLED" && !view.is_gone && !view.has_begun && !view.node.empty())
    return {infrastructure,
            "was cancelled in Slurm before its script began on " + view.node,
            {"`scontrol show node " + view.node + "` may say why the node cannot start jobs",
             std::string(is_retried)},
            {}};
  // A controller that was killed before it had saved the job's begin starts the job again. The node
  // refuses the second one, and Slurm ends both and drains the node.
  if (view.state == "CANCELLED" && !view.is_gone &&
      view.node_reason.find("Duplicate jobid") != std::string::npos)
    return {infrastructure,
            "was cancelled by Slurm, whose restarted controller had started it twice",
            {std::string(is_retried), "Slurm has drained " + view.node +
                                          ": `scontrol update nodename=" + view.node +
                                          " state=resume` gives it back"},
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
            {std::string(is_retried)},
            {"Slurm's job " + job + ": " + view.state}};
  if (view.is_gone)
    return {infrastructure,
            "is lost: Slurm does not know its job " + job +
                " any more, and its node did not write "
                "the step's end",
            {std::string(is_retried)},
            {}};
  return {infrastructure,
          "is lost: Slurm's controller does not answer, and the step's end was not written",
          {"`scontrol ping` shows whether it answers", std::string(is_retried)},
          {}};
}

}  // namespace pipeline::orchestrators::slurm

#include "orchestrators/kubernetes/job_watch.hpp"

#include <algorithm>

#include "kubernetes_api/json.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using namespace std::chrono_literals;
using core::StopLevel;
using Kind = JobAction::Kind;
using Phase = PodState::Phase;

constexpr auto quiet_wait = 3s;  // Shorter waits are not reported.
/// How long an immediate stop waits for the pod's end.
constexpr auto immediate_stop_timeout = 10s;
/// Time after the grace period of a deleted pod, after which its node counts as lost.
constexpr auto overdue = 30s;

}  // namespace

void JobWatch::stop(StopLevel level, TimePoint now) {
  stopping_ = level;
  leaves_since_ = now;  // The pod gets its whole time from here on.
}

/// Returns true if the pod's end is no longer waited for. After a graceful stop, a node that is
/// away may be back within the grace period.
bool JobWatch::is_lost(const JobView& view, const PodState& state, TimePoint now) const {
  if (view.wanted == StopLevel::immediate && stopping_ == StopLevel::immediate &&
      now - *leaves_since_ > immediate_stop_timeout)
    return true;
  if (!leaves_since_ || !state.leaving) return false;
  if (state.node_is_away && stopping_ != StopLevel::graceful) return true;
  const std::chrono::seconds own(
      kubernetes_api::number_at(view.pod, "/metadata/deletionGracePeriodSeconds"));
  return now - *leaves_since_ > std::max(grace_, own) + overdue;
}

JobAction JobWatch::next(const JobView& view, TimePoint now) {
  auto state = view.pod.is_null() ? pod_state_of_job(view.job, startup_, view.refused, view.queued)
                                  : pod_state_of(view.pod, startup_, view.room);
  if (state.phase == Phase::running && !state.stage.empty() && view.has_begun) {
    state.stage.clear();
    state.failure.reset();
  }
  if (state.phase != Phase::ended && state.stage != stage_) {
    stage_ = state.stage;
    if (state.phase == Phase::waiting || !stage_.empty()) stage_since_ = now;
  }
  auto action = act(view, state, now);
  action.state = std::move(state);
  return action;
}

JobAction JobWatch::act(const JobView& view, PodState state, TimePoint now) {
  const bool is_left_alone = stopping_ == StopLevel::none;
  JobAction action;
  const auto with_kind = [&](Kind kind) {
    action.kind = kind;
    return action;
  };
  if (state.phase == Phase::ended || view.pod_gone) return with_kind(Kind::end);
  // The agent is the last process; the cluster reports the pod's end much later.
  if (!is_left_alone && view.output_ended) return with_kind(Kind::end);
  if (is_left_alone && view.job_gone && view.pod.is_null()) return with_kind(Kind::end);
  action.level = is_left_alone && view.shell_left && view.wanted == StopLevel::none
                     ? StopLevel::immediate
                     : view.wanted;
  if (action.level > stopping_) {
    stop(action.level, now);
    return with_kind(Kind::stop);
  }
  if (is_left_alone && state.leaving && !leaves_since_) {
    leaves_since_ = now;
    return with_kind(Kind::remove);
  }
  if (is_lost(view, state, now)) return with_kind(Kind::end);
  if (is_left_alone && state.failure && in_stage(now) >= state.limit) {
    action.failure = std::move(state.failure);
    stop(StopLevel::immediate, now);
    return with_kind(Kind::fail);
  }
  if (!state.waits_for.empty() && in_stage(now) >= quiet_wait &&
      reported_.insert(state.waits_for).second)
    action.notice = state.waits_for;
  action.is_timed = !state.stage.empty() || state.leaving || view.output_ended ||
                    stopping_ == StopLevel::immediate;
  return action;
}

}  // namespace pipeline::orchestrators::kubernetes

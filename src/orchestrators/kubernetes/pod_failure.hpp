/// @file
/// Explains a pod's status in terms that the step's author can act on. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "orchestrators/kubernetes/node_fit.hpp"
#include "orchestrators/orchestrator.hpp"
#include "orchestrators/retry_advice.hpp"

namespace pipeline::orchestrators::kubernetes {

/// The state of a pod, derived from its status.
struct PodState {
  enum class Phase { waiting, running, ended };
  Phase phase = Phase::waiting;
  /// The general reason why the pod waits (`node`, `room`, `quota`, ...), or `services` if the pod
  /// runs and a service is not ready. The time limit starts again with each stage.
  std::string stage;
  /// The reason of the wait for a message to the user; empty if the user need not know it.
  std::string waits_for;
  /// The failure if the wait lasts longer than `limit`; unset if it waits in a queue, which has no
  /// limit. For a pod that runs: the failure of a service that has ended, whatever `limit` is.
  std::optional<Failure> failure;
  std::chrono::seconds limit{0};
  /// The cluster makes the pod once a quota has room, and tries rarely.
  bool in_quota_queue = false;
  /// While the pod waits: the image that its node cannot pull, see pull_advice().
  std::string unfetched;
  bool leaving = false;       ///< The pod is being deleted.
  bool node_is_away = false;  ///< The cluster has lost contact with its node.
};
/// Returns the state of a pod.
/// @param startup time limit for a pod that does not start, unless it waits in a queue
/// @param room the nodes' room for a pod that has no node yet
PodState pod_state_of(const nlohmann::json& pod,
                      std::chrono::seconds startup = std::chrono::minutes(10),
                      Room room = Room::not_looked);
/// Returns the state of a Job that has no pod yet, as if the Job were its pod, which waits.
/// @param refused message of the Job's last event `FailedCreate`; empty: none
/// @param queued why_queued() of a suspended Job
PodState pod_state_of_job(const nlohmann::json& job,
                          std::chrono::seconds startup = std::chrono::minutes(10),
                          const std::string& refused = {}, const std::string& queued = {});

/// Observations of the driver besides the pod itself.
struct PodEnd {
  std::string first_errors, last_output;  ///< See ContainerEnd.
};
/// Returns the failure of a pod that has ended or is being deleted by another program, if any.
std::optional<Failure> failure_of_pod(const nlohmann::json& pod, const AttemptSpec& attempt,
                                      const std::string& image, const PodEnd& end);
/// Returns the failure of a Job that another program deleted before it had a pod.
Failure deleted_before_pod(const std::string& job);
/// Returns the failure of a pod whose Job was suspended while the pod ran; nothing for another Job.
/// Kueue suspends Jobs that it evicts. @param why see eviction_from_queue()
std::optional<Failure> suspended_again(const nlohmann::json& job, const nlohmann::json& pod,
                                       const std::string& why);
/// Returns true if the pod was deleted and its status has no reason (before Kubernetes 1.26), or
/// its node was lost: its events may have the reason.
bool is_unexplained(const nlohmann::json& pod);
/// Returns the reason from the cluster's events of the pod: preempted, evicted by a taint, lost
/// with its node. Nothing if the events have no reason.
std::optional<Failure> explained(const nlohmann::json& pod, const nlohmann::json& events);
/// Returns the failure if the cluster ended the pod because its Job exceeded activeDeadlineSeconds.
/// Both objects may have been deleted since.
std::optional<Failure> past_deadline(const nlohmann::json& job, const nlohmann::json& pod);
/// Returns true if the step's own process has ended, so that the rest of its output is on its way.
bool step_has_ended(const std::optional<Failure>& failure);
/// Returns how long the step's container has been running, from its start by the node's clock until
/// now by this machine's.
std::chrono::milliseconds time_since_start(const nlohmann::json& pod);
/// Returns the exit code of the step's container; nothing if that has not ended.
std::optional<int> exit_code_of(const nlohmann::json& pod);

}  // namespace pipeline::orchestrators::kubernetes

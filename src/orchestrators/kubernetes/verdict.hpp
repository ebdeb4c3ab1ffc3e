/// @file
/// What a pod's status means, in words that its step's author can act on. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// What may be done about failures that are no fault of the step.
inline constexpr const char* restarted_line =
    "a step is begun again as often as `retry.max_infrastructure_retries` says";

/// What a pod is about, as its status tells.
struct PodState {
  enum class Phase { waiting, running, ended };
  Phase phase = Phase::waiting;
  std::string stage;  ///< While it waits: for what in general. RetryPolicy begins anew with each.
  std::string waits_for;  ///< What it waits for, if people should know: the scheduler's words, the
                          ///< image that is not there, its node.
  std::optional<Failure> hopeless;       ///< What it will fail with if that does not pass ...
  std::chrono::seconds retry_policy{0};  ///< ... within this time.
  std::string
      unfetched;  ///< While it waits: the image that its node cannot fetch, see pull_advice().
  bool leaving = false;       ///< Somebody has told it to go.
  bool node_is_away = false;  ///< The cluster does not hear of its node any more.
};
/// @param startup patience with a pod that does not start for want of a node, or for no reason that
/// is known
PodState pod_state_of(const nlohmann::json& pod,
                      std::chrono::seconds startup = std::chrono::minutes(10));
/// Likewise, of a Job that has no pod yet.
PodState job_status_of(const nlohmann::json& job,
                       std::chrono::seconds startup = std::chrono::minutes(10));

/// What the driver has seen beside the pod itself.
struct PodEnd {
  std::string first_errors, last_output;  ///< As ContainerEnd has them.
};
/// Of a pod that has ended, or is on its way out though nobody of ours has sent it away. Nothing
/// for an exit code of 0.
std::optional<Failure> failure_of_pod(const nlohmann::json& pod, const Attempt& attempt,
                                      const std::string& image, const PodEnd& end);
/// Whether the pod was deleted and does not say why, as before Kubernetes 1.26, or that it was the
/// node that was lost: then its events may tell.
bool is_unexplained(const nlohmann::json& pod);
/// Why, by the cluster's events of the pod: preempted, driven away by a taint, lost with its node.
/// Nothing: they do not tell either.
std::optional<Failure> explained(const nlohmann::json& pod, const nlohmann::json& events);
/// The cluster has ended the pod because its Job had run longer than its activeDeadlineSeconds;
/// others may have deleted both by then.
std::optional<Failure> past_deadline(const nlohmann::json& job, const nlohmann::json& pod);
/// The exit code of its container, if that has ended.
std::optional<int> exit_code_of(const nlohmann::json& pod);

}  // namespace pipeline::orchestrators

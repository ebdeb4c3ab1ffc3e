#include "orchestrators/kubernetes/pod_failure.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "core/bounded_json.hpp"
#include "core/quantity.hpp"
#include "kubernetes_api/json.hpp"
#include "kubernetes_api/time.hpp"
#include "orchestrators/containers/container_end.hpp"
#include "orchestrators/kubernetes/manifest.hpp"
#include "orchestrators/kubernetes/pod_refusal.hpp"
#include "orchestrators/kubernetes/pod_services.hpp"
#include "orchestrators/kubernetes/stager_report.hpp"
#include "orchestrators/memory_failure.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using kubernetes_api::at;
using kubernetes_api::list_at;
using kubernetes_api::number_at;
using kubernetes_api::text_at;
using nlohmann::json;

/// Returns the status of the step's container; null if there is none yet.
const json& container_of(const json& pod) {
  return kubernetes_api::named_at(pod, "/status/containerStatuses", step_container);
}

/// Returns true for an init container that runs beside the step, as a service mesh injects.
bool is_sidecar(const json& pod, const json& status) {
  for (const auto& container : list_at(pod, "/spec/initContainers"))
    if (text_at(container, "/name") == text_at(status, "/name"))
      return text_at(container, "/restartPolicy") == "Always";
  return false;
}

/// Returns the status of the init container, such as the agent's, that has not succeeded yet. The
/// step's container waits for it, and its status has no reason. Null if there is none.
const json& pending_init_container(const json& pod) {
  static const json none;
  for (const auto& status : list_at(pod, "/status/initContainerStatuses")) {
    if (is_sidecar(pod, status) && !at(status, "/state/waiting").is_object()) continue;
    const auto& terminated = at(status, "/state/terminated");
    if (!terminated.is_object() || number_at(terminated, "/exitCode") != 0) return status;
  }
  return none;
}

/// Returns the image's name in the pod's spec; a node's own name for it may differ.
std::string image_of(const json& pod, const json& status) {
  for (const char* kind : {"/spec/initContainers", "/spec/containers"})
    for (const auto& container : list_at(pod, kind))
      if (text_at(container, "/name") == text_at(status, "/name") && container.contains("image"))
        return text_at(container, "/image");
  return text_at(status, "/image");
}

const json& condition(const json& pod, std::string_view type) {
  static const json none;
  for (const auto& each : list_at(pod, "/status/conditions"))
    if (text_at(each, "/type") == type) return each;
  return none;
}

bool has_finished(const json& job) {
  return text_at(condition(job, "Failed"), "/status") == "True" ||
         text_at(condition(job, "Complete"), "/status") == "True";
}

/// Returns `the pod x on node y`.
std::string place_of(const json& pod) {
  const auto node = text_at(pod, "/spec/nodeName");
  return "the pod " + text_at(pod, "/metadata/name") + (node.empty() ? "" : " on node " + node);
}

std::string with_detail(const std::string& message, const std::string& more) {
  return more.empty() ? message : message + ": " + more;
}

/// A reason of the kubelet for a waiting container.
struct Wait {
  const char* reason;
  const char* message;
  const char* hint;
  std::chrono::seconds limit;
};
// A registry can be down briefly, and a node learns of a new Secret with a delay.
constexpr std::chrono::seconds at_once{0}, soon{20}, later{180};
constexpr const char* not_fetched = "the image cannot be fetched";
constexpr std::array wait_reasons{
    Wait{"ErrImageNeverPull", "the node does not have the image",
         "the image is on this machine's engine only: name a registry, `docker.target_repository: "
         "HOST/NAME`, or run on a cluster that shares the "
         "engine",
         at_once},
    Wait{"InvalidImageName", "the name of the image is invalid", "check `docker.parent_image`",
         at_once},
    Wait{"ImagePullBackOff", not_fetched, "", later},
    Wait{"ErrImagePull", not_fetched, "", later},
    Wait{"RegistryUnavailable", not_fetched, "", later},
    Wait{"CreateContainerConfigError", "its container refers to an object that does not exist", "",
         soon},
    Wait{"CreateContainerError", "its container cannot be created", "", soon},
    Wait{"RunContainerError", "its container cannot be started", "", soon},
};

/// Explains a pod that its node ended, from the message in its status.
std::optional<Failure> ended_by_node(const json& pod) {
  const auto reason = text_at(pod, "/status/reason"), message = text_at(pod, "/status/message");
  if (reason.empty()) return std::nullopt;
  if (reason == "DeadlineExceeded")
    return Failure{FailureKind::timed_out,
                   with_detail(place_of(pod) + " ran longer than its deadline", message),
                   {},
                   {}};
  std::string what = "failed with " + reason;
  std::vector<std::string> hints{retry_advice};
  if (reason == "Evicted") {
    what = "was evicted by its node";
    hints.insert(hints.begin(),
                 "a step that says what it needs under `resources` is put where there is room, and "
                 "is among the last to be evicted");
  }
  if (reason == "NodeLost") what = "was lost with its node";
  if (reason == "Preempting") what = "was preempted by a pod of higher priority";
  if (reason == "Shutdown" || reason == "NodeShutdown" || reason == "Terminated")
    what = "was ended by its node's shutdown";
  if (reason == "UnexpectedAdmissionError" || reason.starts_with("OutOf"))
    what = "was not taken by its node (" + reason + ")";
  return Failure{FailureKind::infrastructure,
                 with_detail(place_of(pod) + " " + what, message),
                 std::move(hints),
                 {}};
}

/// Explains a pod that another component ended, from the condition that servers since 1.26 set.
std::optional<Failure> disrupted(const json& pod) {
  const auto& disruption = condition(pod, "DisruptionTarget");
  if (text_at(disruption, "/status") != "True") return std::nullopt;
  const auto reason = text_at(disruption, "/reason");
  std::string what = "was disrupted (" + reason + ")";
  if (reason == "PreemptionByScheduler" || reason == "PreemptionByKubeScheduler")
    what = "was preempted by a pod of higher priority";
  if (reason == "DeletionByTaintManager")
    what = "had to leave its node, which got a taint that it does not tolerate";
  if (reason == "DeletionByPodGC")
    what = "was lost with its node, which the cluster does not have any more";
  if (reason == "EvictionByEvictionAPI") what = "was evicted, as when a node is drained";
  return Failure{FailureKind::infrastructure,
                 with_detail(place_of(pod) + " " + what, text_at(disruption, "/message")),
                 {retry_advice},
                 {}};
}

std::optional<Failure> infrastructure(const json& pod) {
  // A newer kubelet sets both, and its condition (TerminationByKubelet) has less information.
  if (auto failure = ended_by_node(pod)) return failure;
  if (auto failure = disrupted(pod)) return failure;
  if (!text_at(pod, "/metadata/deletionTimestamp").empty())
    return Failure{FailureKind::infrastructure,
                   place_of(pod) + " was deleted by another user or program",
                   {retry_advice},
                   {}};
  return std::nullopt;
}

/// The reasons in events of a pod that was deleted, by precedence: a taint also evicts pods from
/// a lost node.
constexpr std::pair<std::string_view, const char*> reasons_of_events[] = {
    {"NodeNotReady", "was lost with its node, which the cluster does not hear from any more"},
    {"NodeControllerEviction",
     "was lost with its node, which the cluster does not hear from any more"},
    {"Preempted", "was preempted by a pod of higher priority"},
    {"TaintManagerEviction", "had to leave its node, which got a taint that it does not tolerate"},
};

/// Returns `cpu 1500m, memory 1.0 GiB, nvidia.com/gpu 8`.
std::string asked_by(const json& pod) {
  std::string text;
  for (const auto& container : list_at(pod, "/spec/containers"))
    for (const auto& [name, value] : at(container, "/resources/requests").items()) {
      const auto amount = value.is_string() ? value.get<std::string>() : value.dump();
      const auto bytes =
          name == "cpu" || name.find('/') != name.npos ? std::nullopt : core::parse_bytes(amount);
      text +=
          (text.empty() ? "" : ", ") + name + " " + (bytes ? core::format_bytes(*bytes) : amount);
    }
  return text;
}

/// Returns true if the scheduler reports that other pods use the resources that the pod, or its
/// PodGroup, asks for.
bool is_about_room(const std::string& message) {
  constexpr std::array words{"Insufficient ", "Too many pods", "free ports", "minCount "};
  return std::ranges::any_of(words, [&](auto* word) { return message.find(word) != message.npos; });
}

/// Returns the state of a pod that has no node yet.
PodState unscheduled(const json& pod, std::chrono::seconds startup, Room room) {
  constexpr std::chrono::seconds node_delay(5);  // A node may just have been added.
  PodState state;
  const auto message = text_at(condition(pod, "PodScheduled"), "/message");
  state.stage = "node";
  if (text_at(condition(pod, "PodScheduled"), "/reason") == "SchedulingGated") {
    state.stage = "gate";
    state.waits_for = with_detail("a scheduling gate holds its pod", message);
    return state;
  }
  const auto wants = asked_by(pod);
  const std::string looks = "`kubectl describe nodes` shows what the nodes have, and what is taken";
  state.waits_for = with_detail("no node takes it", message);
  if (is_about_room(message) && (room == Room::taken || room == Room::unknown)) {
    state.stage = "room";
    state.waits_for = with_detail("no node has room for it yet", message);
    return state;
  }
  state.failure = Failure{FailureKind::not_started,
                          "could not start: " + state.waits_for,
                          {(wants.empty() ? "" : "the step asks for " + wants + "; ") + looks},
                          {}};
  state.limit = room == Room::never ? std::min(startup, node_delay) : startup;
  return state;
}

/// Returns the state of a pod that waits for a container.
/// @param container the status of the container that must start next
PodState waiting(const json& pod, const json& container, std::chrono::seconds startup) {
  PodState state;
  const auto reason = text_at(container, "/state/waiting/reason");
  const auto* const wait = std::ranges::find(wait_reasons, reason, &Wait::reason);
  if (wait == std::end(wait_reasons)) {
    state.stage = "container";
    state.failure =
        Failure{FailureKind::not_started,
                place_of(pod) + " has not started within " + core::format_duration(startup) +
                    (reason.empty() ? "" : " (" + reason + ")"),
                {},
                {}};
    state.limit = startup;
    return state;
  }
  const auto image = image_of(pod, container);
  state.stage = wait->message;
  state.waits_for = with_detail(
      std::string(wait->message) + " (" + (image.empty() ? "" : image + ", ") + reason + ")",
      text_at(container, "/state/waiting/message"));
  state.failure = Failure{
      FailureKind::not_started, place_of(pod) + " could not start: " + state.waits_for, {}, {}};
  if (*wait->hint) state.failure->hints.emplace_back(wait->hint);
  if (std::string_view(wait->message) == not_fetched) state.unfetched = image;
  state.limit = wait->limit;
  return state;
}

}  // namespace

bool step_has_ended(const std::optional<Failure>& failure) {
  return !failure || failure->kind == FailureKind::exit_code ||
         failure->kind == FailureKind::signal || failure->kind == FailureKind::out_of_memory;
}

PodState pod_state_of(const json& pod, std::chrono::seconds startup, Room room) {
  PodState state;
  const auto phase = text_at(pod, "/status/phase");
  const auto& container = container_of(pod);
  state.leaving = !text_at(pod, "/metadata/deletionTimestamp").empty();
  if (phase == "Succeeded" || phase == "Failed" || at(container, "/state/terminated").is_object()) {
    state.phase = PodState::Phase::ended;
    return state;
  }
  if (at(container, "/state/running").is_object()) {
    if (const auto& service = waiting_service(pod); !service.is_null())
      return waiting(pod, service, startup);
    state.phase = PodState::Phase::running;
    state.failure = failure_of_service(pod, false);
    if (state.failure) return state;
    if (auto late = service_to_wait_for(pod)) {
      state.stage = "services";
      state.failure = std::move(late->failure);
      state.limit = late->limit;
    }
    // The kubelet gives a reason when it revokes readiness; the node controller gives none.
    const auto& ready = condition(pod, "Ready");
    state.node_is_away = text_at(ready, "/status") == "False" && text_at(ready, "/reason").empty();
    if (state.node_is_away)
      state.waits_for = "the cluster does not hear from the node " +
                        text_at(pod, "/spec/nodeName") +
                        " any more; the attempt is given up if that lasts longer than its pod "
                        "tolerates (5 min, unless `tolerations` say otherwise)";
    return state;
  }
  if (text_at(condition(pod, "PodScheduled"), "/status") == "False")
    return unscheduled(pod, startup, room);
  const auto& init = pending_init_container(pod);
  if (at(init, "/state/running").is_object()) {
    // The downloaded files can be large; the stager gives up by itself.
    state.stage = "files";
    return state;
  }
  return waiting(pod, init.is_null() ? container : init, startup);
}

PodState pod_state_of_job(const json& job, std::chrono::seconds startup, const std::string& refused,
                          const std::string& queued) {
  PodState state;
  state.stage = "pod";
  if (at(job, "/spec/suspend") == true) {
    state.waits_for = queued.empty()
                          ? "its Job is suspended, as by a queue that has no room for it yet"
                          : "Kueue does not admit its Job yet: " + queued;
    return state;
  }
  if (has_finished(job)) {
    state.stage = "end";
    state.failure = Failure{FailureKind::infrastructure,
                            "its Job " + text_at(job, "/metadata/name") +
                                " has ended, and its pod is not there any more",
                            {retry_advice},
                            {}};
    state.limit = soon;
    return state;
  }
  state.failure = Failure{FailureKind::not_started,
                          "its Job " + text_at(job, "/metadata/name") + " got no pod within " +
                              core::format_duration(startup),
                          {},
                          {}};
  state.limit = startup;
  if (refused.empty()) return state;
  const auto refusal = refusal_of(refused);
  state.waits_for = refusal.reason;
  if (refusal.kind == Refusal::Kind::temporary) return state;
  state.stage = "quota";
  state.limit = at_once;
  state.failure = kubernetes::refused(refusal);
  state.in_quota_queue = refusal.kind == Refusal::Kind::full;
  if (state.in_quota_queue) state.failure.reset();
  return state;
}

bool is_unexplained(const json& pod) {
  return !text_at(pod, "/metadata/deletionTimestamp").empty() &&
         text_at(pod, "/status/reason").empty() &&
         (text_at(condition(pod, "DisruptionTarget"), "/status") != "True" ||
          text_at(condition(pod, "DisruptionTarget"), "/reason") == "DeletionByTaintManager");
}

std::optional<Failure> explained(const json& pod, const json& events) {
  for (const auto& [reason, what] : reasons_of_events)
    for (const auto& event : list_at(events, "/items"))
      if (text_at(event, "/reason") == reason)
        return Failure{FailureKind::infrastructure,
                       with_detail(place_of(pod) + " " + what, text_at(event, "/message")),
                       {retry_advice},
                       {}};
  return std::nullopt;
}

std::optional<Failure> suspended_again(const json& job, const json& pod, const std::string& why) {
  if (at(job, "/spec/suspend") != true || !is_unexplained(pod)) return std::nullopt;
  return Failure{FailureKind::infrastructure,
                 place_of(pod) + " was ended because its Job was suspended" +
                     (why.empty() ? ", as Kueue does with those that it evicts"
                                  : ": Kueue has evicted it: " + why),
                 {retry_advice},
                 {}};
}

std::optional<Failure> past_deadline(const json& job, const json& pod) {
  const auto time_limit = std::chrono::seconds(number_at(job, "/spec/activeDeadlineSeconds"));
  auto began = kubernetes_api::parse_time(text_at(job, "/status/startTime"));
  if (!began) began = kubernetes_api::parse_time(text_at(job, "/metadata/creationTimestamp"));
  const auto gone = kubernetes_api::parse_time(
      text_at(pod, "/metadata/deletionTimestamp"));  // The time after the grace period.
  if (time_limit.count() == 0 || !began || !gone) return std::nullopt;
  if (*gone - std::chrono::seconds(number_at(pod, "/metadata/deletionGracePeriodSeconds")) <
      *began + time_limit)
    return std::nullopt;
  return Failure{
      FailureKind::timed_out,
      place_of(pod) + " was ended by the cluster: its Job has a deadline of " +
          core::format_duration(time_limit),
      {"`active_deadline_seconds` of its `kubernetes` settings says how long it may take"},
      {}};
}

std::chrono::milliseconds time_since_start(const json& pod) {
  using std::chrono::system_clock;
  const auto now = system_clock::now();
  const auto start =
      kubernetes_api::parse_time(text_at(container_of(pod), "/state/running/startedAt"));
  return std::chrono::duration_cast<std::chrono::milliseconds>(now -
                                                               std::min(now, start.value_or(now)));
}

std::optional<int> exit_code_of(const json& pod) {
  const auto& terminated = at(container_of(pod), "/state/terminated");
  if (!terminated.is_object()) return std::nullopt;
  return static_cast<int>(number_at(terminated, "/exitCode"));
}

std::optional<Failure> failure_of_pod(const json& pod, const AttemptSpec& attempt,
                                      const std::string& image, const PodEnd& end) {
  const auto& terminated = at(container_of(pod), "/state/terminated");
  const auto code = exit_code_of(pod);
  if (code == 0 && text_at(pod, "/status/phase") != "Failed") return std::nullopt;
  if (auto failure = infrastructure(pod)) return failure;
  if (const auto& init = pending_init_container(pod);
      !code && at(init, "/state/terminated").is_object()) {
    const auto& why = at(init, "/state/terminated");
    const auto init_message = text_at(why, "/message");
    if (auto failure = stager_failure(init_message, place_of(pod))) return failure;
    constexpr int killed = 128 + SIGKILL;
    const bool may_succeed_later =
        number_at(why, "/exitCode") == killed && text_at(why, "/reason") != "OOMKilled";
    Failure failure{may_succeed_later ? FailureKind::infrastructure : FailureKind::not_started,
                    with_detail(place_of(pod) + " could not start: its init container '" +
                                    text_at(init, "/name") + "' ended with exit code " +
                                    std::to_string(number_at(why, "/exitCode")),
                                init_message),
                    {},
                    {}};
    if (init_message.find("exec format error") != init_message.npos)
      failure.hints = {
          "it is made for this machine's kind of processor: have the step run on nodes of that "
          "kind (their label is kubernetes.io/arch)"};
    return failure;
  }
  if (!code)
    return Failure{FailureKind::infrastructure,
                   place_of(pod) + " ended, and nothing is known of its container",
                   {retry_advice},
                   {}};
  const auto reason = text_at(terminated, "/reason"), message = text_at(terminated, "/message");
  if (reason == "OOMKilled") return memory_failure(attempt.step, place_of(pod));
  if (auto failure = stager_failure(message, place_of(pod))) return failure;
  const auto report = core::parse_json(message);
  if (report.is_object() && report.contains("not_executed")) {
    const auto error = number_at(report, "/not_executed");
    const std::string words = error == ENOENT    ? "no such file or directory"
                              : error == ENOEXEC ? "exec format error"
                                                 : "permission denied";
    if (auto failure = containers::not_executed(words, attempt, image)) return failure;
  }
  if (reason == "ContainerCannotRun" || reason == "StartError")
    return Failure{
        FailureKind::not_started, with_detail(place_of(pod) + " could not start", message), {}, {}};
  const containers::ContainerEnd container{.exit_code = *code,
                                           .oom_killed = false,
                                           .first_errors = end.first_errors,
                                           .last_output = end.last_output};
  auto failure = failure_of(container, attempt, image);
  auto of_service = failure ? failure_of_service(pod, true) : std::nullopt;
  if (!of_service) return failure;
  of_service->details.push_back("the step " + failure->message);
  return of_service;
}

Failure deleted_before_pod(const std::string& job) {
  return {FailureKind::infrastructure,
          "its Job " + job + " was deleted by another user or program before it had a pod",
          {retry_advice},
          {}};
}

}  // namespace pipeline::orchestrators::kubernetes

#include "orchestrators/kubernetes/pod_services.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/diagnostic.hpp"
#include "core/quantity.hpp"
#include "kubernetes_api/json.hpp"
#include "kubernetes_api/time.hpp"
#include "orchestrators/containers/container_layout.hpp"
#include "orchestrators/containers/service_variables.hpp"
#include "orchestrators/kubernetes/manifest.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using kubernetes_api::at;
using kubernetes_api::list_at;
using kubernetes_api::number_at;
using kubernetes_api::parse_time;
using kubernetes_api::text_at;
using nlohmann::json;

constexpr std::string_view service_prefix = "service-";
constexpr std::chrono::minutes ready_timeout{2};

bool is_service(const json& container) {
  return text_at(container, "/name").starts_with(service_prefix);
}

json service_environment(const AttemptSpec& attempt, const ServiceSpec& service) {
  // The cluster gives GPUs to the step's container.
  json list = json::array({{{"name", "NVIDIA_VISIBLE_DEVICES"}, {"value", "void"}}});
  for (const auto& [name, value, is_secret] : containers::service_variables(attempt, service)) {
    if (is_secret)
      list.push_back(
          {{"name", name},
           {"valueFrom", {{"secretKeyRef", {{"name", job_name(attempt)}, {"key", name}}}}}});
    else
      list.push_back({{"name", name}, {"value", escape_references(value)}});
  }
  return list;
}

/// Returns the mounts of the step that a service has, too.
json service_mounts(const PodFiles& files, const std::string& agent) {
  const auto& layout = containers::container_layout();
  json mounts = json::array();
  for (auto mount : files.mounts) {
    const auto target = text_at(mount, "/mountPath");
    const bool is_input = target == layout.inputs || target.starts_with(layout.inputs + "/");
    const bool has_agent = target == agent || agent.starts_with(target + "/");
    const bool is_services_folder = target == services_folder;
    if (target != layout.code && !is_input && !has_agent && !is_services_folder) continue;
    if (!is_services_folder) mount["readOnly"] = true;
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

json limits_of_service(const ServiceResources& resources) {
  json limits = json::object();
  if (resources.cpu_count)
    limits["cpu"] = std::to_string(std::max(1LL, std::llround(*resources.cpu_count * 1000))) + "m";
  if (resources.memory) limits["memory"] = std::to_string(*resources.memory);
  return limits;
}

json probe(std::vector<std::string> words) {
  for (auto& word : words) word = escape_references(word);
  return {{"exec", {{"command", std::move(words)}}}};
}

/// Adds a service's probes. The service is ready once the startup probe has succeeded. The liveness
/// probe fails after the step has ended, so that the node ends the service.
void add_probes(json& container, const std::string& name, const ServiceReady& ready,
                const std::string& agent) {
  std::vector<std::string> words{agent, "probe", std::string(services_folder) + "/" + name};
  if (ready.command.empty()) {
    words.insert(words.end(), {"port", std::to_string(ready.port)});
    if (!ready.http.empty()) words.push_back(ready.http);
  } else {
    words.emplace_back("run");
    words.insert(words.end(), ready.command.begin(), ready.command.end());
  }
  const auto timeout = std::chrono::ceil<std::chrono::seconds>(
      std::chrono::milliseconds(ready.timeout.value_or(ready_timeout)));
  auto& starts = container["startupProbe"] = probe(std::move(words));
  starts["periodSeconds"] = 1;
  starts["timeoutSeconds"] = 10;  // More than agent/ready.cpp waits for an answer.
  starts["failureThreshold"] = timeout.count();
  auto& lives = container["livenessProbe"] = probe({agent, "needed", services_folder});
  lives["periodSeconds"] = 2;
  // Patient: a probe on a busy node must not end the service while the step runs.
  lives["timeoutSeconds"] = 30;
  lives["failureThreshold"] = 3;
}

json service_spec(const AttemptSpec& attempt, const std::string& name,
                  const ServiceOptions& options) {
  const auto& service = attempt.step.services.at(name);
  const auto image = options.images.find(name);
  json container{{"name", service_container(name)},
                 {"image", image == options.images.end() ? service.image : image->second},
                 {"imagePullPolicy", options.pull ? "IfNotPresent" : "Never"},
                 {"env", service_environment(attempt, service)},
                 {"volumeMounts", service_mounts(options.files, options.agent)}};
  for (const auto& word : service.entrypoint)
    container["command"].push_back(escape_references(word));
  for (const auto& word : service.command) container["args"].push_back(escape_references(word));
  container["securityContext"] = json::object();
  restrict_privileges(container["securityContext"]);
  if (const auto limits = limits_of_service(service.resources); !limits.empty())
    container["resources"] = {{"limits", limits}, {"requests", limits}};
  add_probes(container, name, service.ready, options.agent);
  return container;
}

/// Gives a service the /dev/shm that it asks for; a node's default is 64 MiB.
void add_shared_memory(json& pod, json& container, const std::string& name, Bytes size) {
  const auto volume = "memory-" + name;
  pod["volumes"].push_back(
      {{"name", volume},
       {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", std::to_string(size)}}}});
  container["volumeMounts"].push_back({{"name", volume}, {"mountPath", "/dev/shm"}});
}

/// Throws InputError if two services have the same `ready` port, because all containers of a pod
/// share one network. Other ports that images open are not known.
void check_ports(const StepSpec& step) {
  std::map<unsigned, std::string> users;
  for (const auto& [name, service] : step.services) {
    if (service.ready.port == 0) continue;
    const auto [first, is_new] = users.emplace(service.ready.port, name);
    if (!is_new)
      throw core::InputError("step '" + step.name + "': the services '" + first->second +
                                 "' and '" + name + "' have the same port " +
                                 std::to_string(service.ready.port) +
                                 ", and in a pod all services share one network",
                             "let one of them use another port, or run the step with "
                             "`orchestrator: docker`");
  }
}

/// Returns the container in the pod's spec to which the status belongs.
const json& spec_of(const json& pod, const json& status) {
  return kubernetes_api::named_at(pod, "/spec/containers", text_at(status, "/name"));
}

/// Returns true if all containers of the pod were ready at some moment after `time`.
bool was_ready_since(const json& pod, std::chrono::system_clock::time_point time) {
  for (const auto& condition : list_at(pod, "/status/conditions"))
    if (text_at(condition, "/type") == "ContainersReady") {
      const auto changed = parse_time(text_at(condition, "/lastTransitionTime"));
      return text_at(condition, "/status") == "True" || (changed && *changed > time);
    }
  return false;
}

std::string title_of(const json& pod, const json& status) {
  return "its service '" + text_at(status, "/name").substr(service_prefix.size()) + "' (" +
         text_at(spec_of(pod, status), "/image") + ") ";
}

LateService late_service(const json& pod, const json& status) {
  const std::chrono::seconds limit(
      number_at(spec_of(pod, status), "/startupProbe/failureThreshold"));
  return {{FailureKind::not_started,
           title_of(pod, status) + "was not ready within " + core::format_duration(limit),
           {"`ready: {timeout: 10m}` gives it more time"},
           {}},
          limit};
}

Failure failure_of_service(const json& pod, const json& status, bool step_has_begun) {
  const auto& end = at(status, "/state/terminated");
  const auto title = title_of(pod, status);
  const auto began = parse_time(text_at(end, "/startedAt"));
  const auto ended = parse_time(text_at(end, "/finishedAt"));
  auto late = late_service(pod, status);
  const bool was_ready = step_has_begun || (began && was_ready_since(pod, *began));
  const auto kind = was_ready ? FailureKind::exit_code : FailureKind::not_started;
  const std::string when = was_ready ? " while the step ran" : " before it was ready";
  if (text_at(end, "/reason") == "OOMKilled")
    return {kind,
            title + "was killed" + when + " because it used too much memory",
            {"raise `resources: {memory: ...}` of the service"},
            {}};
  if (!was_ready && began && ended && *ended - *began >= late.limit) return std::move(late.failure);
  auto message =
      title + "ended with exit code " + std::to_string(number_at(end, "/exitCode")) + when;
  if (const auto why = text_at(end, "/message"); !why.empty()) message += ": " + why;
  return {kind, std::move(message), {}, {}};
}

}  // namespace

std::string service_container(const std::string& name) {
  return std::string(service_prefix) + name;
}

void add_services(json& pod, const AttemptSpec& attempt, const ServiceOptions& options) {
  check_ports(attempt.step);
  json alias{{"ip", "127.0.0.1"}};
  for (const auto& [name, service] : attempt.step.services) {
    auto container = service_spec(attempt, name, options);
    if (const auto& size = service.resources.shm_size)
      add_shared_memory(pod, container, name, *size);
    pod["containers"].push_back(std::move(container));
    alias["hostnames"].push_back(name);
  }
  pod["hostAliases"] = json::array({std::move(alias)});
}

const json& waiting_service(const json& pod) {
  static const json none;
  for (const auto& status : list_at(pod, "/status/containerStatuses"))
    if (is_service(status) && at(status, "/state/waiting").is_object()) return status;
  return none;
}

bool services_are_ready(const json& pod) {
  for (const auto& status : list_at(pod, "/status/containerStatuses"))
    if (is_service(status) && at(status, "/started") != true) return false;
  return true;
}

std::optional<LateService> service_to_wait_for(const json& pod) {
  std::optional<LateService> first;
  for (const auto& status : list_at(pod, "/status/containerStatuses")) {
    if (!is_service(status) || !at(status, "/state/running").is_object() ||
        at(status, "/started") == true)
      continue;
    auto late = late_service(pod, status);
    if (!first || late.limit < first->limit) first = std::move(late);
  }
  return first;
}

std::optional<Failure> failure_of_service(const json& pod, bool step_has_begun) {
  std::optional<std::chrono::system_clock::time_point> end;
  for (const auto& status : list_at(pod, "/status/containerStatuses"))
    if (text_at(status, "/name") == step_container)
      end = parse_time(text_at(status, "/state/terminated/finishedAt"));
  for (const auto& status : list_at(pod, "/status/containerStatuses")) {
    if (!is_service(status) || !at(status, "/state/terminated").is_object()) continue;
    const auto ended = parse_time(text_at(status, "/state/terminated/finishedAt"));
    if (!end || (ended && *ended <= *end)) return failure_of_service(pod, status, step_has_begun);
  }
  return std::nullopt;
}

}  // namespace pipeline::orchestrators::kubernetes

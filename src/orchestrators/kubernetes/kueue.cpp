#include "orchestrators/kubernetes/kueue.hpp"

#include "core/diagnostic.hpp"
#include "core/log.hpp"
#include "kubernetes_api/json.hpp"
#include "net/url.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using kubernetes_api::text_at;
using nlohmann::json;

/// Returns the message of the condition if it has this status, or its reason if it has no message;
/// empty without such a condition.
std::string condition_message(const json& workload, std::string_view type,
                              std::string_view status) {
  for (const auto& each : kubernetes_api::list_at(workload, "/status/conditions")) {
    if (text_at(each, "/type") != type || text_at(each, "/status") != status) continue;
    const auto message = text_at(each, "/message");
    return message.empty() ? text_at(each, "/reason") : message;
  }
  return {};
}

}  // namespace

void add_topology(json& metadata, const StepSpec& step) {
  const auto& settings = step.settings->kubernetes;
  const auto& topology = settings.topology;
  if (!topology.required && !topology.preferred) return;
  if (!settings.queue_name)
    throw core::InputError(
        "step '" + step.name + "' has `kubernetes.topology`, which only Kueue honours",
        "name its queue, as in `kubernetes: {queue_name: training}`");
  const std::string kind = topology.required ? "required" : "preferred";
  metadata["annotations"]["kueue.x-k8s.io/podset-" + kind + "-topology"] =
      topology.required ? *topology.required : *topology.preferred;
}

std::string why_queued(const json& workload) {
  if (auto message = condition_message(workload, "QuotaReserved", "False"); !message.empty())
    return message;
  return condition_message(workload, "Admitted", "False");
}

Eviction eviction_from_queue(const json& workload) {
  if (auto message = condition_message(workload, "Preempted", "True"); !message.empty())
    return {.why = std::move(message), .is_preemption = true};
  return {.why = condition_message(workload, "Evicted", "True")};
}

async::Task<json> Kueue::workload_of(std::string job_uid) {
  json found;
  try {
    if (may_read_ && group_version_.empty()) {
      const auto group = co_await client_.get("look for Kueue", "/apis/kueue.x-k8s.io");
      group_version_ = text_at(group, "/preferredVersion/groupVersion");
    }
    may_read_ = may_read_ && !group_version_.empty();
    if (!may_read_) co_return found;
    const auto list = co_await client_.get(
        "read what Kueue says of the Job",
        client_.path(group_version_, "workloads") +
            "?labelSelector=" + net::url_encode("kueue.x-k8s.io/job-uid=" + job_uid));
    const auto& items = kubernetes_api::list_at(list, "/items");
    if (!items.empty()) found = items.front();
  } catch (const kubernetes_api::ApiError& error) {
    const auto status = error.status();
    if (status == 401 || status == 403 || status == 404) may_read_ = false;
    core::log::info(error.what());
  }
  co_return found;
}

}  // namespace pipeline::orchestrators::kubernetes

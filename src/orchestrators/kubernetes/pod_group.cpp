#include "orchestrators/kubernetes/pod_group.hpp"

#include <algorithm>

#include "core/log.hpp"
#include "kubernetes_api/json.hpp"

namespace pipeline::orchestrators::kubernetes {

using kubernetes_api::ApiError;
using kubernetes_api::text_at;
using nlohmann::json;

async::Task<std::string> find_pod_group_version(kubernetes_api::Client& client) {
  const auto is_group = [](const json& each) { return text_at(each, "/name") == "podgroups"; };
  try {
    const auto group = co_await client.get("look for PodGroups", "/apis/scheduling.k8s.io");
    for (const auto& each : kubernetes_api::list_at(group, "/versions")) {
      const auto version = text_at(each, "/groupVersion");
      if (version.find("alpha") != version.npos) continue;
      // The API group also has priority classes, so a version may have no PodGroups.
      const auto found = co_await client.get("look for PodGroups", "/apis/" + version);
      if (std::ranges::any_of(kubernetes_api::list_at(found, "/resources"), is_group))
        co_return version;
    }
  } catch (const ApiError& error) {
    core::log::info(error.what());
  }
  co_return std::string();
}

bool can_have_pod_group(const StepSpec& step) {
  const auto& settings = step.settings->kubernetes;
  return !settings.queue_name &&
         settings.scheduler_name.value_or("default-scheduler") == std::string("default-scheduler");
}

json pod_group_manifest(const json& job, const std::string& version) {
  json group{{"apiVersion", version}, {"kind", "PodGroup"}};
  for (const char* each : {"name", "labels"})
    group["metadata"][each] = kubernetes_api::at(job, "/metadata").at(each);
  auto& spec = group["spec"];
  spec["schedulingPolicy"]["gang"]["minCount"] = kubernetes_api::at(job, "/spec/completions");
  spec["disruptionMode"]["all"] = json::object();  // Without one of its pods, the step fails.
  if (auto priority = text_at(job, "/spec/template/spec/priorityClassName"); !priority.empty())
    spec["priorityClassName"] = std::move(priority);
  return group;
}

async::Task<bool> create_pod_group(kubernetes_api::Client& client, json group) {
  const auto path =
      client.path(text_at(group, "/apiVersion"), "podgroups") + "?fieldValidation=Strict";
  bool is_there = true;
  try {
    co_await client.create("create the PodGroup " + text_at(group, "/metadata/name"), path, group);
  } catch (const ApiError& error) {
    is_there = error.status() == 409;
    core::log::info(error.what());
  }
  co_return is_there;
}

async::Task<> give_pod_group(kubernetes_api::Client& client, std::string version, std::string name,
                             std::string job_uid) {
  json change;
  change["metadata"]["ownerReferences"] = json::array(
      {json{{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", name}, {"uid", job_uid}}});
  try {
    co_await client.patch("change the PodGroup " + name, client.path(version, "podgroups", name),
                          std::move(change));
  } catch (const ApiError& error) {
    core::log::info(error.what());
  }
}

}  // namespace pipeline::orchestrators::kubernetes

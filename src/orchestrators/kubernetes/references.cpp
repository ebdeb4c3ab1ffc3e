#include "orchestrators/kubernetes/references.hpp"

#include <algorithm>

#include "kubernetes_api/json.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using kubernetes_api::at;
using kubernetes_api::list_at;
using kubernetes_api::text_at;
using nlohmann::json;

Reference secret(std::string_view setting) { return {"Secret", "", "secrets", true, setting, {}}; }
Reference config_map(std::string_view setting) {
  return {"ConfigMap", "", "configmaps", true, setting, {}};
}

class References {
 public:
  explicit References(std::string own_secret) : own_secret_(std::move(own_secret)) {}

  /// @param object its text at `place` is the reference's name; it can be marked as optional
  void add(Reference reference, const json& object, const std::string& place = "/name") {
    reference.name = text_at(object, place);
    const bool is_ours = reference.plural == "secrets" && reference.name == own_secret_;
    if (reference.name.empty() || is_ours || at(object, "/optional") == true) return;
    if (std::find(all.begin(), all.end(), reference) == all.end())
      all.push_back(std::move(reference));
  }

  void add_container(const json& container) {
    for (const auto& variable : list_at(container, "/env")) {
      add(secret("env"), at(variable, "/valueFrom/secretKeyRef"));
      add(config_map("env"), at(variable, "/valueFrom/configMapKeyRef"));
    }
    for (const auto& source : list_at(container, "/envFrom")) {
      add(secret("env_from"), at(source, "/secretRef"));
      add(config_map("env_from"), at(source, "/configMapRef"));
    }
  }

  void add_volume(const json& volume) {
    add({"PersistentVolumeClaim", "", "persistentvolumeclaims", true, "volumes", {}},
        at(volume, "/persistentVolumeClaim"), "/claimName");
    add(secret("volumes"), at(volume, "/secret"), "/secretName");
    add(config_map("volumes"), at(volume, "/configMap"));
    for (const auto& source : list_at(volume, "/projected/sources")) {
      add(secret("volumes"), at(source, "/secret"));
      add(config_map("volumes"), at(source, "/configMap"));
    }
  }

  std::vector<Reference> all;

 private:
  std::string own_secret_;
};

}  // namespace

std::vector<Reference> references_of(const json& job) {
  References found(text_at(job, "/metadata/name"));
  const auto& pod = at(job, "/spec/template/spec");
  for (const auto* list : {"/containers", "/initContainers"})
    for (const auto& container : list_at(pod, list)) found.add_container(container);
  for (const auto& volume : list_at(pod, "/volumes")) found.add_volume(volume);
  for (const auto& each : list_at(pod, "/imagePullSecrets"))
    found.add(secret("image_pull_secrets"), each);
  found.add({"ServiceAccount", "", "serviceaccounts", true, "service_account_name", {}}, pod,
            "/serviceAccountName");
  found.add({"PriorityClass",
             "scheduling.k8s.io/v1",
             "priorityclasses",
             false,
             "priority_class_name",
             {}},
            pod, "/priorityClassName");
  found.add({"RuntimeClass", "node.k8s.io/v1", "runtimeclasses", false, "runtime_class_name", {}},
            pod, "/runtimeClassName");
  found.add({"LocalQueue", "kueue.x-k8s.io", "localqueues", true, "queue_name", {}}, job,
            "/metadata/labels/kueue.x-k8s.io~1queue-name");
  return std::move(found.all);
}

}  // namespace pipeline::orchestrators::kubernetes

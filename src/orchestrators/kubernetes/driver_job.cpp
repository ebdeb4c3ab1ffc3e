#include "orchestrators/kubernetes/driver_job.hpp"

#include "orchestrators/kubernetes/manifest.hpp"
#include "orchestrators/kubernetes/merge.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;

constexpr int max_failed_pods = 1000;  ///< High enough that no run ends because of the limit.
constexpr int seconds_kept_after_end = 24 * 3600;  // For a Job whose driver could not delete it.
constexpr int driver_grace_seconds = 30;

json metadata_of(const DriverJob& driver) {
  return {{"name", driver_name(driver.run_id)},
          {"labels",
           {{"app.kubernetes.io/managed-by", "pipe"},
            // The label is not pipe.run, because the driver must not be removed with attempts.
            {"pipe.driver", label_value(driver.run_id)},
            {"pipe.pipeline", label_value(driver.pipeline)},
            {"pipe.state", driver.owner}}}};
}

json container_security(const DriverJob& driver) {
  const auto colon = driver.user.find(':');
  json context{{"runAsUser", std::stoll(driver.user)},
               {"runAsGroup", std::stoll(driver.user.substr(colon + 1))},
               {"capabilities", {{"drop", {"ALL"}}}}};
  for (const auto& [key, value] : driver.settings.container_security_context) context[key] = *value;
  restrict_privileges(context);
  return context;
}

}  // namespace

KubernetesSettings driver_settings(const std::vector<const StepSpec*>& steps) {
  KubernetesSettings shared;
  if (!steps.empty()) shared = steps.front()->settings->kubernetes;
  const auto keep_equal = [](auto& ours, const auto& theirs) {
    std::erase_if(ours, [&](const auto& each) {
      const auto other = theirs.find(each.first);
      return other == theirs.end() || !(other->second == each.second);
    });
  };
  for (const auto* step : steps) {
    const auto& own = step->settings->kubernetes;
    keep_equal(shared.labels, own.labels);
    keep_equal(shared.annotations, own.annotations);
    keep_equal(shared.pod_security_context, own.pod_security_context);
    keep_equal(shared.container_security_context, own.container_security_context);
  }
  for (const char* key : {"privileged", "capabilities", "runAsUser", "runAsGroup"})
    shared.container_security_context.erase(key);
  return shared;
}

std::string driver_name(const std::string& run_id) {
  return job_name(run_id, "driver", 0);  // No attempt has the number 0.
}

json driver_manifest(const DriverJob& driver) {
  auto metadata = metadata_of(driver);
  for (const auto& [name, value] : driver.settings.labels) metadata["labels"].emplace(name, value);
  if (!driver.settings.annotations.empty()) metadata["annotations"] = driver.settings.annotations;
  PodFiles files(driver.claim);
  const auto& shared = driver.claim.name.empty() ? driver.state : driver.claim.root;
  if (driver.has_own_state)
    files.add_empty("state", driver.state.string(), false);
  else
    files.add(shared, true, shared.string(), false);
  files.volumes.push_back({{"name", "scratch"}, {"emptyDir", json::object()}});
  files.mounts.push_back({{"name", "scratch"}, {"mountPath", "/tmp"}});

  json command = driver.image.command;
  for (const auto& word : driver.arguments) command.push_back(escape_references(word));
  json variables = json::array();
  for (const auto& [name, value] : driver.variables)
    variables.push_back(
        {{"name", name},
         {"valueFrom", {{"secretKeyRef", {{"name", driver_name(driver.run_id)}, {"key", name}}}}}});
  json container{{"name", step_container},  // pod_failure.hpp recognises the pod by this name.
                 {"image", driver.image.reference},
                 {"imagePullPolicy", driver.image.pull ? "IfNotPresent" : "Never"},
                 {"command", std::move(command)},
                 {"env", std::move(variables)},
                 {"volumeMounts", files.mounts},
                 {"resources", {{"requests", {{"cpu", "100m"}, {"memory", "128Mi"}}}}},
                 {"terminationMessagePolicy", "FallbackToLogsOnError"},
                 {"securityContext", container_security(driver)}};
  json pod{{"restartPolicy", "Never"},
           {"serviceAccountName", driver.service_account},
           {"containers", json::array({std::move(container)})},
           {"volumes", files.volumes},
           {"terminationGracePeriodSeconds", driver_grace_seconds},
           {"automountServiceAccountToken", true},
           {"enableServiceLinks", false},
           {"nodeSelector", {{"kubernetes.io/arch", driver.image.architecture}}}};
  for (const auto& name : driver.pull_secrets) pod["imagePullSecrets"].push_back({{"name", name}});
  for (const auto& [key, value] : driver.settings.pod_security_context)
    pod["securityContext"][key] = *value;
  auto pod_metadata = metadata;
  pod_metadata.erase("name");
  json spec{{"backoffLimit", max_failed_pods},
            {"completions", 1},
            {"parallelism", 1},
            {"ttlSecondsAfterFinished", seconds_kept_after_end},
            {"template", {{"metadata", std::move(pod_metadata)}, {"spec", std::move(pod)}}}};
  json job{{"apiVersion", "batch/v1"},
           {"kind", "Job"},
           {"metadata", metadata},
           {"spec", std::move(spec)}};
  if (driver.patch.is_object()) merge_patch(job, driver.patch);
  return job;
}

std::optional<json> driver_secret(const DriverJob& driver) {
  if (driver.variables.empty()) return std::nullopt;
  return json{{"apiVersion", "v1"},
              {"kind", "Secret"},
              {"metadata", metadata_of(driver)},
              {"stringData", driver.variables}};
}

}  // namespace pipeline::orchestrators::kubernetes

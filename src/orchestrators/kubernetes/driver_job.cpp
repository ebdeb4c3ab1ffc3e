#include "orchestrators/kubernetes/driver_job.hpp"

#include "orchestrators/kubernetes/manifest.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;

constexpr int most_pods =
    1000;  // Number of lost or failed pods; a run must not end because of this limit.
constexpr int seconds_kept_after_end = 24 * 3600;  // For a Job that could not delete itself.
constexpr int driver_grace_seconds = 30;

json metadata_of(const DriverJob& driver) {
  return {{"name", driver_name(driver.run_id)},
          {"labels",
           {{"app.kubernetes.io/managed-by", "pipe"},
            // Not pipe.run: the driver is not an attempt and must not be removed with attempts.
            {"pipe.driver", label_value(driver.run_id)},
            {"pipe.pipeline", label_value(driver.pipeline)},
            {"pipe.state", driver.owner}}}};
}

json security(const std::string& user) {
  const auto colon = user.find(':');
  return {{"runAsUser", std::stoll(user)},
          {"runAsGroup", std::stoll(user.substr(colon + 1))},
          {"allowPrivilegeEscalation", false},
          {"capabilities", {{"drop", {"ALL"}}}}};
}

}  // namespace

std::string driver_name(const std::string& run_id) {
  return job_name(run_id, "driver", 0);
}  // Attempts count from 1.

json driver_manifest(const DriverJob& driver) {
  const auto metadata = metadata_of(driver);
  PodFiles files(driver.claim);
  const auto& shared = driver.claim.name.empty() ? driver.state : driver.claim.root;
  if (driver.has_own_state)
    files.add_empty("state", driver.state.string(), false);
  else
    files.add(shared, true, shared.string(), false);
  files.volumes.push_back({{"name", "scratch"}, {"emptyDir", json::object()}});
  files.mounts.push_back({{"name", "scratch"}, {"mountPath", "/tmp"}});

  json command = driver.image.command;
  for (const auto& word : driver.arguments) command.push_back(literally(word));
  json variables = json::array();
  for (const auto& [name, value] : driver.variables)
    variables.push_back(
        {{"name", name},
         {"valueFrom", {{"secretKeyRef", {{"name", driver_name(driver.run_id)}, {"key", name}}}}}});
  json container{{"name", step_container},  // verdict.hpp recognises the pod by this name.
                 {"image", driver.image.reference},
                 {"imagePullPolicy", driver.image.pull ? "IfNotPresent" : "Never"},
                 {"command", std::move(command)},
                 {"env", std::move(variables)},
                 {"volumeMounts", files.mounts},
                 {"resources", {{"requests", {{"cpu", "100m"}, {"memory", "128Mi"}}}}},
                 {"terminationMessagePolicy", "FallbackToLogsOnError"},
                 {"securityContext", security(driver.user)}};
  json pod{{"restartPolicy", "Never"},
           {"serviceAccountName", driver.service_account},
           {"containers", json::array({std::move(container)})},
           {"volumes", files.volumes},
           {"terminationGracePeriodSeconds", driver_grace_seconds},
           {"automountServiceAccountToken", true},
           {"enableServiceLinks", false},
           {"nodeSelector", {{"kubernetes.io/arch", driver.image.architecture}}}};
  for (const auto& name : driver.pull_secrets) pod["imagePullSecrets"].push_back({{"name", name}});
  json spec{
      {"backoffLimit", most_pods},
      {"completions", 1},
      {"parallelism", 1},
      {"ttlSecondsAfterFinished", seconds_kept_after_end},
      {"template", {{"metadata", {{"labels", metadata["labels"]}}}, {"spec", std::move(pod)}}}};
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", metadata},
          {"spec", std::move(spec)}};
}

std::optional<json> driver_secret(const DriverJob& driver) {
  if (driver.variables.empty()) return std::nullopt;
  return json{{"apiVersion", "v1"},
              {"kind", "Secret"},
              {"metadata", metadata_of(driver)},
              {"stringData", driver.variables}};
}

}  // namespace pipeline::orchestrators::kubernetes

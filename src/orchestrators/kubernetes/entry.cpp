#include <algorithm>

#include <nlohmann/json.hpp>

#include "orchestrators/catalog/catalog.hpp"

namespace pipeline::orchestrators {
namespace {

bool is_claim(const nlohmann::json& volume) {
  if (volume.is_string()) return volume.get<std::string>().starts_with("pvc/");
  return volume.is_object() && volume.contains("persistentVolumeClaim");
}

/// Returns the name of the setting by which the step mounts claims; empty if there are none.
std::string mounts_claims(const StepSpec& step) {
  const auto& volumes = *step.settings->kubernetes.volumes;
  return volumes.is_array() && std::ranges::any_of(volumes, is_claim) ? "kubernetes.volumes" : "";
}

}  // namespace

Entry kubernetes_entry() {
  return {
      .name = "kubernetes",
      .help = "as Jobs of a cluster",
      .settings = "kubernetes",
      .traits = {.uses_images = true,
                 .needs_engine = true,
                 .evaluates_constraints = true,
                 .renders_manifests = true,
                 .can_detach = true,
                 .runs_nodes = true},
      .connection =
          {{.name = "context",
            .key = "context",
            .option_help = "The kubeconfig's context that names the cluster (default: its current "
                           "one)",
            .identifies_service = true},
           {.name = "namespace",
            .key = "namespace",
            .option_help = "Where in the cluster (default: the context's)",
            .identifies_service = true},
           {.name = "service_account", .key = "service_account"},
           {.name = "driver_job_patch",
            .key = "driver_job_patch",
            .kind = ConnectionField::Kind::job},
           {.name = "claim", .key = "claim.name"},
           {.name = "claim_path", .key = "claim.path", .kind = ConnectionField::Kind::path},
           {.name = "node_cache", .key = "node_cache.path", .kind = ConnectionField::Kind::volume},
           {.name = "node_cache_budget",
            .key = "node_cache.budget",
            .kind = ConnectionField::Kind::bytes}},
      .connection_maps = {{.key = "claim",
                           .missing_key_message =
                               "a claim has a `name`, in the cluster, and a `path`, where "
                               "this machine sees its content",
                           .example = "claim: {name: pipe-artifacts, path: /mnt/lab}",
                           .message_with_artifact_store =
                               "pods get their files either through a claim or through a remote "
                               "store"},
                          {.key = "node_cache",
                           .missing_key_message =
                               "a node_cache has a `path`, a folder of each node, and a "
                               "`budget`, the most that it takes there",
                           .example = "node_cache: {path: /var/cache/pipe, budget: 200GiB}",
                           .message_without_artifact_store =
                               "a node_cache keeps what pods download from a bucket, and this "
                               "profile has no bucket"}},
      .setting_outside_key = mounts_claims};
}

}  // namespace pipeline::orchestrators

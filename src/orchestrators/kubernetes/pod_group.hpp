/// @file
/// PodGroups of scheduling.k8s.io: the scheduler gives all pods of a gang nodes, or none.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "kubernetes_api/client.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Returns the API version with PodGroups, `scheduling.k8s.io/v1beta1` or a newer one; empty: the
/// cluster serves none, or alphas alone, which differ from one another.
async::Task<std::string> find_pod_group_version(kubernetes_api::Client& client);

/// Returns whether the scheduler of this step's pods would honour a PodGroup. A step in a queue of
/// Kueue needs none.
bool can_have_pod_group(const StepSpec& step);

/// Returns the PodGroup of a Job with nodes, which has the Job's name. Its priority is that of the
/// Job's pods: the scheduler refuses a group in which they differ.
nlohmann::json pod_group_manifest(const nlohmann::json& job, const std::string& version);
/// Creates a PodGroup. Returns false if the cluster refuses it; the Job is created without it then.
async::Task<bool> create_pod_group(kubernetes_api::Client& client, nlohmann::json group);
/// Makes the Job of the same name the owner of the PodGroup, so that the cluster removes the
/// PodGroup with the Job. A failure is only logged.
async::Task<> give_pod_group(kubernetes_api::Client& client, std::string version, std::string name,
                             std::string job_uid);

}  // namespace pipeline::orchestrators::kubernetes

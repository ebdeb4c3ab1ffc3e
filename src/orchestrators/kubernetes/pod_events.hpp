/// @file
/// Information from a cluster's events that a Job or pod lacks in its status.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "async/task.hpp"
#include "kubernetes_api/client.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Returns the messages of events as lines, without duplicates, and without those that `shown`
/// contains. An event `Error: X` is left out if `shown` contains X: a kubelet repeats the error in
/// a container's status as such an event, up to a minute later.
/// @param shown texts that the user is shown anyway
std::vector<std::string> warnings_in(const nlohmann::json& events, std::string_view shown);

/// Adds the cluster's warnings about a Job or a pod to the failure's details: failing mounts,
/// quotas. A cluster that does not answer adds none.
async::Task<> add_warnings(kubernetes_api::Client& client, std::string name, Failure& failure);

/// Returns the cluster's last message about a Job whose pod it has not created; empty if there is
/// none.
async::Task<std::string> last_refusal(kubernetes_api::Client& client, std::string job);
/// Finds the message of last_refusal() in the Job's events.
std::string refusal_in(const nlohmann::json& events);

/// Explains a deleted pod by the cluster's events if its status has no reason.
async::Task<> explain(kubernetes_api::Client& client, const nlohmann::json& pod, Failure& failure);

}  // namespace pipeline::orchestrators::kubernetes

/// @file
/// What a cluster's events say of a Job or a pod, beside its status.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "async/task.hpp"
#include "kubernetes/client.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// Adds the cluster's warnings about a Job or a pod to the failure's details: failing mounts,
/// quotas. A cluster that does not answer adds none.
async::Task<> add_warnings(kubernetes::Client& client, std::string name, Failure& failure);

/// Explains a deleted pod by the cluster's events if its status has no reason.
async::Task<> explain(kubernetes::Client& client, const nlohmann::json& pod, Failure& failure);

}  // namespace pipeline::orchestrators

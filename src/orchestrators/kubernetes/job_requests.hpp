/// @file
/// Requests about a Job by its name, whether its pod runs a step or a driver.
#pragma once

#include <string>

#include "kubernetes_api/client.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Deletes the Job and its pod. A missing Job is not an error.
/// @param uid deletes only the Job with this uid; if empty, any Job of the name
async::Task<> delete_job(kubernetes_api::Client& client, std::string name, std::string uid = {});

/// Returns the list of the Job's pods, also of a Job that was deleted.
async::Task<nlohmann::json> pods_of_job(kubernetes_api::Client& client, std::string name);

}  // namespace pipeline::orchestrators::kubernetes

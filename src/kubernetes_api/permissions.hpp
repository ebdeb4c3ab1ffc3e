/// @file
/// The permissions that `pipe` needs in a namespace; a Role of that namespace can grant all of
/// them.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kubernetes_api/client.hpp"

namespace pipeline::kubernetes_api {

struct Permission {
  std::string group, resource;  ///< An empty group is the core group; `pods/log` is a subresource.
  std::vector<std::string> verbs;
};
/// Returns the permissions to run steps.
const std::vector<Permission>& permissions();
/// Returns the additional permissions for a run with a driver in the cluster. Both the driver and
/// the machine that starts the run need them.
const std::vector<Permission>& driver_permissions();

/// Returns a list of manifests: a Role with all permissions, its binding to the subject, and the
/// subject itself if it is a service account. Throws InputError for an invalid subject.
/// @param subject `User:NAME`, `Group:NAME` or `ServiceAccount:NAME`; empty: a placeholder for a
/// user's name
nlohmann::json role_manifests(const std::string& name_space, const std::string& subject);

/// Returns the permissions that the cluster does not grant, such as `create jobs.batch`.
async::Task<std::vector<std::string>> missing_permissions(
    Client& client, const std::vector<Permission>& wanted = permissions());

}  // namespace pipeline::kubernetes_api

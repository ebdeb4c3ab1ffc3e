/// @file
/// What we have to be allowed in a namespace: no more than a Role of that namespace can give.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kubernetes/client.hpp"

namespace pipeline::kubernetes {

struct Permission {
  std::string group, resource;  ///< Empty group: the core. `pods/log`: of a part.
  std::vector<std::string> verbs;
};
/// For running steps.
const std::vector<Permission>& permissions();
/// For a run with a driver in the cluster what both sides need besides.
const std::vector<Permission>& driver_permissions();

/// The Role with all of these, its binding to a user, group or service account (`KIND:NAME`, empty:
/// a placeholder to be filled in), and the service account.
nlohmann::json role_manifests(const std::string& name_space, const std::string& subject);

/// Those of them that the cluster does not grant us: `create jobs.batch`.
async::Task<std::vector<std::string>> missing_permissions(
    Client& client, const std::vector<Permission>& wanted = permissions());

}  // namespace pipeline::kubernetes

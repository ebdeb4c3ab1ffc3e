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
const std::vector<Permission>& permissions();

/// The Role, and its binding to a user, group or service account (`KIND:NAME`, empty: a placeholder to be filled in).
nlohmann::json role_manifests(const std::string& name_space, const std::string& subject);

/// Those of them that the cluster does not grant us: `create jobs.batch`.
Task<std::vector<std::string>> missing_permissions(Client& client);

}  // namespace pipeline::kubernetes

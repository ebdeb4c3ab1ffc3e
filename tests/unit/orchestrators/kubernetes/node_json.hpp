/// @file
/// Nodes as a cluster's API describes them.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace pipeline::orchestrators::kubernetes {

inline nlohmann::json node(const std::string& name, const nlohmann::json& allocatable,
                           const nlohmann::json& labels = nlohmann::json::object(),
                           const nlohmann::json& taints = nlohmann::json::array()) {
  return {{"metadata", {{"name", name}, {"labels", labels}}},
          {"spec", {{"taints", taints}}},
          {"status", {{"allocatable", allocatable}}}};
}

}  // namespace pipeline::orchestrators::kubernetes

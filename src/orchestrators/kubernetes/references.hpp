/// @file
/// What a Job refers to: objects that have to be there before its pod can start. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace pipeline::orchestrators {

struct Reference {
  std::string_view kind;     ///< `Secret`, for people.
  std::string_view group;    ///< `scheduling.k8s.io/v1`; empty: the core's; without a version: that
                             ///< which the cluster prefers.
  std::string_view plural;   ///< `secrets`, in paths.
  bool of_namespace;         ///< Else of the whole cluster.
  std::string_view setting;  ///< Of `settings.kubernetes`, where it is named.
  std::string name;
  auto operator<=>(const Reference&) const = default;
};

/// In no order, each once. What is optional is left out, and so is the Secret that goes with the
/// Job.
std::vector<Reference> references_of(const nlohmann::json& job);

}  // namespace pipeline::orchestrators

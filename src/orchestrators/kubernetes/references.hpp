/// @file
/// The references of a Job: objects that must exist before its pod can start. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace pipeline::orchestrators::kubernetes {

struct Reference {
  std::string_view kind;     ///< `Secret`, for messages.
  std::string_view group;    ///< `scheduling.k8s.io/v1`; empty: the core group; without a version:
                             ///< the cluster's preferred version.
  std::string_view plural;   ///< `secrets`, in paths.
  bool of_namespace;         ///< The object is in a namespace; otherwise it is cluster-wide.
  std::string_view setting;  ///< The key of `settings.kubernetes` that names it.
  std::string name;
  auto operator<=>(const Reference&) const = default;
};

/// Returns the references, unsorted and without duplicates. Optional references and the Job's own
/// Secret are omitted.
std::vector<Reference> references_of(const nlohmann::json& job);

}  // namespace pipeline::orchestrators::kubernetes

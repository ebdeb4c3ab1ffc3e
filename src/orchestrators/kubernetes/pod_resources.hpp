/// @file
/// What a step asks for of its node, and what follows from its GPUs. Pure.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// True for a resource of a device plugin, which is named `DOMAIN/NAME`.
inline bool is_extended(const std::string& resource) {
  return resource.find('/') != resource.npos && resource.find("kubernetes.io/") == resource.npos;
}
/// True for an extended resource that is a GPU.
inline bool is_gpu(const std::string& resource) {
  return is_extended(resource) &&
         (resource.find("gpu") != resource.npos || resource.starts_with("nvidia.com/"));
}

/// The step's GPUs by their names on the cluster, with the amount of each: those of `resources`,
/// and those of `kubernetes.resources.limits`. Throws InputError for what a cluster cannot give:
/// devices of the user's choice, all of them.
StringMap gpus_on_cluster(const StepSpec& step);

/// A container's `resources`: limits, and requests that equal them unless others are given. Empty
/// if nothing is asked for.
nlohmann::json pod_resources(const StepSpec& step);

/// Those of the settings, and of the taints that keep other pods off nodes with what this one asks
/// for.
nlohmann::json pod_tolerations(const StepSpec& step);

}  // namespace pipeline::orchestrators

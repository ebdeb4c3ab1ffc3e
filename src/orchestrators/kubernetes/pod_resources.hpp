/// @file
/// A step's resource requests, and what follows from its GPUs. Pure.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Returns true for a resource of a device plugin, which is named `DOMAIN/NAME`.
inline bool is_extended(const std::string& resource) {
  return resource.find('/') != resource.npos && resource.find("kubernetes.io/") == resource.npos;
}
/// Returns true for an extended resource that is a GPU.
inline bool is_gpu(const std::string& resource) {
  return is_extended(resource) &&
         (resource.find("gpu") != resource.npos || resource.starts_with("nvidia.com/"));
}

/// Returns the step's GPUs by their resource names on the cluster, with the amount of each: those
/// of `resources` and those of `kubernetes.resources.limits`. Throws InputError for requests that a
/// cluster does not support: specific devices, or all devices.
StringMap gpus_on_cluster(const StepSpec& step);

/// Returns a container's `resources`: limits, and requests that equal them unless others are given.
/// Empty if nothing is requested.
nlohmann::json pod_resources(const StepSpec& step);

/// Returns the tolerations of the settings, and those of the taints that keep other pods off nodes
/// with the requested resources.
nlohmann::json pod_tolerations(const StepSpec& step);

}  // namespace pipeline::orchestrators::kubernetes

/// @file
/// The nodes that a step may run on, and those that it prefers, from its placement constraints,
/// instance type, GPU requirements and own affinity settings. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Models of GPUs by the node label that names them: `nvidia.com/gpu.product` to `Tesla-T4`, ...
using GpuModels = std::map<std::string, std::set<std::string>>;

/// Names of nodes by the weight, from 1 to 100, with which they are preferred to others.
using PreferredNodes = std::map<unsigned, std::vector<std::string>>;

/// Returns the models in the labels of these nodes (items of a list).
GpuModels models_on(const nlohmann::json& nodes);

/// Returns the pod's `affinity`; null if it may run on any node. Throws InputError for what a node
/// affinity cannot express.
/// @param models the models that the cluster is known to have: a `gpu_class` stands for those that
/// it matches, or, if none match, for its own text
/// @param avoided names of nodes that others are preferred to
nlohmann::json pod_affinity(const StepSpec& step, const GpuModels& models,
                            const std::vector<std::string>& avoided = {},
                            const PreferredNodes& preferred = {});

}  // namespace pipeline::orchestrators::kubernetes

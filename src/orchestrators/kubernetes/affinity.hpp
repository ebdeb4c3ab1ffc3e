/// @file
/// Which nodes a step may run on: placement constraints, an instance type, what its GPUs have to
/// be, and the affinity that its settings give. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// Models of GPUs by the label that nodes tell them with: `nvidia.com/gpu.product` to `Tesla-T4`,
/// ...
using GpuModels = std::map<std::string, std::set<std::string>>;

/// The models that these nodes (items of a list) say they have.
GpuModels models_on(const nlohmann::json& nodes);

/// The pod's `affinity`; null if it may run anywhere. Throws InputError for what a node affinity
/// cannot express.
/// @param models that the cluster is known to have: a `gpu_class` stands for those of them that it
/// matches, or, where none does, for its own text
nlohmann::json pod_affinity(const StepSpec& step, const GpuModels& models);

}  // namespace pipeline::orchestrators

/// @file
/// Whether a node would take a pod, were it empty: what the scheduler looks at first, so that a
/// step that no node can ever take is told before anything is built. Pure; nodes and pods as the
/// API has them.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace pipeline::orchestrators {

/// What a node has against a pod, in words that follow its name: `has 4 of 8 nvidia.com/gpu`.
struct NodeFit {
  std::vector<std::string> lasting;  ///< Until somebody changes the node, or the pod.
  bool only_gpus = false;            ///< Too few GPUs are all that is lasting ...
  double gpus = 0;                   ///< ... of which it has this many.
  bool fits() const { return lasting.empty(); }
};
/// What may pass by itself (a node that is not ready, closed or under pressure) does not count.
NodeFit fit(const nlohmann::json& node, const nlohmann::json& pod_spec);

/// `8 nvidia.com/gpu, 4 CPUs, 64 GiB memory`: what the pod asks for.
std::string requests_text(const nlohmann::json& pod_spec);
/// `4 nvidia.com/gpu, NVIDIA-A100-SXM4-80GB`: the node's GPUs; `no GPUs`.
std::string gpus_of_node(const nlohmann::json& node);

/// `node1, node2 and 8 others (4 nvidia.com/gpu) have 4 of 8 nvidia.com/gpu`: the nodes with what
/// each has against the pod, those that lack least first; at most some ten lines. Empty if one of
/// them fits.
std::vector<std::string> why_none_fits(const nlohmann::json& nodes, const nlohmann::json& pod_spec);

}  // namespace pipeline::orchestrators

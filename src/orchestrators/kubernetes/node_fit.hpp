/// @file
/// Checks whether an empty node would accept a pod, by the scheduler's first criteria, so that a
/// step that fits no node is reported before anything is built. Pure; nodes and pods are the API's
/// objects.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace pipeline::orchestrators::kubernetes {

/// The reasons why a node rejects a pod, for messages after its name: `has 4 of 8 nvidia.com/gpu`.
struct NodeFit {
  std::vector<std::string> lasting;  ///< Reasons that last until the node or the pod is changed.
  bool only_gpus = false;            ///< Too few GPUs are the only lasting reason.
  double gpus = 0;                   ///< Number of GPUs of the node.
  bool fits() const { return lasting.empty(); }
};
/// Returns the reasons, except transient ones: a node that is not ready, closed or under pressure.
NodeFit fit(const nlohmann::json& node, const nlohmann::json& pod_spec);

/// Returns how many such pods an empty node takes at the same time.
unsigned pods_on(const nlohmann::json& node, const nlohmann::json& pod_spec);

/// The prospects of a pod that no node takes at present.
enum class Room {
  not_looked,
  unknown,  ///< This user may not list the nodes.
  never,    ///< Not even an empty node would take the pod.
  later,    ///< A node that is closed or not ready, or that the cluster may add, would take it.
  taken     ///< A usable node would take it, once other pods have ended.
};
/// Returns the prospects of a pod.
/// @param nodes       null if they are not known
/// @param autoscaling the cluster adds nodes as they are needed
Room room_on(const nlohmann::json& nodes, const nlohmann::json& pod_spec, bool autoscaling);

/// Returns the pod's requests: `8 nvidia.com/gpu, 4 CPUs, 64 GiB memory`.
std::string requests_text(const nlohmann::json& pod_spec);
/// Returns the node's GPUs: `4 nvidia.com/gpu, NVIDIA-A100-SXM4-80GB`, or `no GPUs`.
std::string gpus_of_node(const nlohmann::json& node);

/// Returns the nodes with the reasons of each, those that lack least first, at most some ten lines:
/// `node1, node2 and 8 others (4 nvidia.com/gpu) have 4 of 8 nvidia.com/gpu`. Empty if one of them
/// fits.
std::vector<std::string> why_none_fits(const nlohmann::json& nodes, const nlohmann::json& pod_spec);

}  // namespace pipeline::orchestrators::kubernetes

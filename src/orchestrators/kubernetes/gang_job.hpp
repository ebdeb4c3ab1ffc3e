/// @file
/// The one Job of a gang, that is, of all processes of an attempt of a step with nodes, on servers
/// that have Indexed Jobs. Each node has a pod.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "async/gate.hpp"
#include "orchestrators/kubernetes/job_creation.hpp"

namespace pipeline::orchestrators::kubernetes {

/// The state that the run_job() calls for an attempt's nodes share. Each call follows the pod of
/// one index; the call for node 0 creates the Job, and removes it at the end. No pod is replaced:
/// when one fails or is deleted, the Job's controller deletes the others.
struct GangJob {
  explicit GangJob(const asio::any_io_executor& executor, std::string pod_group_version = {})
      : is_settled(executor), pod_group(std::move(pod_group_version)) {}
  /// Opened when `created` is set, when the Job cannot be created, and when the attempt is stopped.
  async::Gate is_settled;
  /// API version of the Job's PodGroup; empty: it has none.
  std::string pod_group;
  CreatedJob created;
};

/// Returns whether the Job's controller makes a pod for each index.
bool has_indexed_jobs(std::pair<int, int> version);

/// Gives the Job a pod for each node. @param spec of the Job
void make_indexed(nlohmann::json& spec, const AttemptSpec& attempt, const GangJob& job);

/// Links `nodes/0/...` to the folders of node 0, because the path of each pod's folder is made of
/// its index.
void link_first_node(const AttemptSpec& attempt);
/// Empties the folders that the pods of all nodes write to. @param attempt of node 0
void empty_folders(const AttemptSpec& attempt);

/// Returns the path of a node's folder, relative to the parent of the attempt's outputs.
/// @param node   number of the node, or node_mark
/// @param folder outputs_of_node or scratch_of_node
std::string folder_of_node(const std::string& node, const char* folder);
/// The scratch folder is that of the node's first process (orchestrators/gang.cpp).
inline constexpr const char *outputs_of_node = "outputs", *scratch_of_node = "scratch.0";

}  // namespace pipeline::orchestrators::kubernetes

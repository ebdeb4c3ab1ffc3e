/// @file
/// The one Job of all pods of a step with nodes, on servers that have Indexed Jobs.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "async/gate.hpp"
#include "orchestrators/kubernetes/job_creation.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Shared by the runs of an attempt's nodes, each of which follows the pod of one index: that of
/// node 0 creates the Job, and removes it in the end. The Job has no pod beyond the first of an
/// index: when a pod fails or is deleted, its controller deletes the others.
struct GangJob {
  explicit GangJob(const asio::any_io_executor& executor, std::string pod_group_version = {})
      : is_settled(executor), pod_group(std::move(pod_group_version)) {}
  async::Gate is_settled;  ///< `created` is known.
  /// API version of its PodGroup; empty: it has none.
  std::string pod_group;
  CreatedJob created;
};

/// Returns whether the Job's controller makes a pod for each index.
bool has_indexed_jobs(std::pair<int, int> version);

/// Gives the Job a pod for each node. @param spec of the Job
void make_indexed(nlohmann::json& spec, const AttemptSpec& attempt, const GangJob& job);

/// Makes the folders of node 0 those of the index 0, `nodes/0/...`: a pod's folder is a function of
/// its index.
void link_first_node(const AttemptSpec& attempt);
/// Empties the folders that the pods of all nodes write to. @param attempt of node 0
void empty_folders(const AttemptSpec& attempt);

/// Path of a node's folder, from the folder of the attempt's outputs. @param folder `outputs` or
/// `scratch.0` @param node its number, or node_mark
std::string folder_of_node(const std::string& node, const char* folder);
inline constexpr const char *outputs_of_node = "outputs", *scratch_of_node = "scratch.0";

}  // namespace pipeline::orchestrators::kubernetes

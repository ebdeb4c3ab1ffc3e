/// @file
/// Checks a pipeline's steps against a cluster before anything is built: permissions, objects that
/// settings name, nodes, and the cluster's own validation of each Job.
#pragma once

#include <vector>

#include "kubernetes_api/client.hpp"
#include "orchestrators/kubernetes/affinity.hpp"
#include "orchestrators/kubernetes/example_job.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Returns the cluster's nodes with what room_on() reads of them; null without permission to list
/// them.
async::Task<nlohmann::json> nodes_of(kubernetes_api::Client& client);

struct ClusterCheck {
  std::vector<core::Diagnostic> obstacles;
  GpuModels gpu_models;  ///< GPU models of its nodes, as far as they are visible.
};

/// Checks all steps at once; steps with equal settings share requests. Objects without read
/// permission are assumed to exist. Creates nothing. Throws EnvironmentError if the cluster cannot
/// be reached or does not permit running steps at all.
/// @param options has the folder of the runs and how pods see it
async::Task<ClusterCheck> check_steps(kubernetes_api::Client& client,
                                      const std::vector<const StepSpec*>& steps,
                                      ExampleJobOptions options);

}  // namespace pipeline::orchestrators::kubernetes

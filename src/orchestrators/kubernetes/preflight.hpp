/// @file
/// What a cluster would have against a pipeline's steps, asked before anything is built: rights,
/// objects that settings name, nodes, and the cluster's own check of each Job.
#pragma once

#include <vector>

#include "kubernetes/client.hpp"
#include "orchestrators/kubernetes/affinity.hpp"
#include "orchestrators/kubernetes/example_job.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

struct ClusterCheck {
  std::vector<core::Diagnostic> obstacles;
  GpuModels gpu_models;  ///< That its nodes have, as far as we may see them.
};

/// Of all steps at once; those with equal settings are asked about together. What we have no right
/// to read is taken to be there. Nothing is made. Throws EnvironmentError where the cluster cannot
/// be reached, or does not let us run steps at all.
/// @param place with the folder of the runs, and how pods see it
async::Task<ClusterCheck> check_steps(kubernetes::Client& client,
                                      const std::vector<const StepSpec*>& steps,
                                      ExampleJobOptions place);

}  // namespace pipeline::orchestrators

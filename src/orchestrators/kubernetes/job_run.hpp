/// @file
/// Runs one Job from its creation to its removal.
#pragma once

#include "kubernetes_api/client.hpp"
#include "orchestrators/agent_reports.hpp"
#include "orchestrators/kubernetes/job_informer.hpp"
#include "orchestrators/kubernetes/manifest.hpp"
#include "orchestrators/kubernetes/pod_staging.hpp"
#include "orchestrators/removals.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Runs the attempt in a Job of its own, or joins the one that an earlier driver of the same
/// attempt has left. When this returns or throws, no process of the attempt is running and its
/// removal has begun. Throws what LogSink throws, and EnvironmentError if the cluster is lost.
/// @param files exchanges files with the pod; null: the pod sees this machine's files
/// @param report kept up to date with the agent's reports
async::Task<AttemptResult> run_job(kubernetes_api::Client& client, JobInformer& informer,
                                   const Attempt& attempt, const JobOptions& options,
                                   PodStaging* files, Removals& removals, AgentReport& report);

}  // namespace pipeline::orchestrators::kubernetes

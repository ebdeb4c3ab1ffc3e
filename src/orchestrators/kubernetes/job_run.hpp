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

/// The objects that run_job() uses.
struct JobContext {
  kubernetes_api::Client& client;
  JobInformer& informer;
  Removals& removals;
  AgentReport& report;          ///< Kept up to date with the reports of the attempt's agent.
  PodStaging* files = nullptr;  ///< Exchanges files with pods; null: pods see this machine's files.
};

/// Runs the attempt in a Job of its own, or joins the one that an earlier driver of the same
/// attempt has left. When this returns or throws, no process of the attempt is running and its
/// removal has begun. Throws what LogSink throws, and EnvironmentError if the cluster is lost.
async::Task<AttemptResult> run_job(const JobContext& context, const Attempt& attempt,
                                   const JobOptions& options);

}  // namespace pipeline::orchestrators::kubernetes

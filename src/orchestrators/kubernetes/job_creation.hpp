/// @file
/// Creates the Job of an attempt, or finds the one that a dead driver has left.
#pragma once

#include <chrono>
#include <optional>

#include <nlohmann/json.hpp>

#include "kubernetes_api/client.hpp"
#include "orchestrators/kubernetes/job_informer.hpp"
#include "orchestrators/kubernetes/manifest.hpp"
#include "orchestrators/kubernetes/pod_staging.hpp"

namespace pipeline::orchestrators::kubernetes {

struct CreatedJob {
  nlohmann::json job;  ///< Null: the attempt was stopped, or has `failure`.
  nlohmann::json pods = nlohmann::json::array();  ///< The pods of a Job that was adopted.
  std::optional<Failure> failure = {};
  std::chrono::nanoseconds staging_time{};  ///< How long PodStaging::stage_in() took.
};

/// Creates the Job of an attempt, and its Secret if it has one. If a Job of that name exists,
/// adopts it instead. If the cluster refuses the PodGroup of a step with nodes, empties
/// GangJob::pod_group of `options.gang_job`, and creates the Job without a PodGroup.
/// @param staging exchanges files with the pod; null: the pod sees this machine's files
/// @param known the Job and its pod as a watch has reported them
async::Task<CreatedJob> create_job(kubernetes_api::Client& client, const Attempt& attempt,
                                   const JobOptions& options, PodStaging* staging,
                                   const JobInformer::Entry& known);

/// Returns the pod of this index from the list; null if it is not there.
/// @param index unset for a Job with one pod
nlohmann::json pod_in(const nlohmann::json& pods, std::optional<unsigned> index);

}  // namespace pipeline::orchestrators::kubernetes

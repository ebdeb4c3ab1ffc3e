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
  nlohmann::json job;                             ///< Null: the attempt was stopped, or `failure`.
  nlohmann::json pods = nlohmann::json::array();  ///< Those of a Job that existed.
  std::optional<Failure> failure = {};
  std::chrono::nanoseconds brought{};  ///< How long this side's part of bringing files took.
};

/// @param known what a watch knows already of the Job's pod
/// @param files exchanges files with the pod; null: the pod sees this machine's files
async::Task<CreatedJob> create_job(kubernetes_api::Client& client, const Attempt& attempt,
                                   const JobOptions& place, PodStaging* files,
                                   const JobInformer::Entry& known);

/// Returns the pod of a list that runs this index; null: there is none. @param index unset: of a
/// Job with one pod
nlohmann::json pod_in(const nlohmann::json& pods, std::optional<unsigned> index);

}  // namespace pipeline::orchestrators::kubernetes

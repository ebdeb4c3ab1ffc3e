/// @file
/// Requests about a Job by its name, whether its pod runs a step or a driver.
#pragma once

#include <optional>
#include <string>

#include "kubernetes_api/client.hpp"
#include "orchestrators/kubernetes/pod_refusal.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Deletes the Job and its pod. A missing Job is not an error.
/// @param uid deletes only the Job with this uid; if empty, any Job of the name
async::Task<> delete_job(kubernetes_api::Client& client, std::string name, std::string uid = {});

/// Returns the list of the Job's pods, also of a Job that was deleted.
async::Task<nlohmann::json> pods_of_job(kubernetes_api::Client& client, std::string name);

/// Returns the list of Jobs that have all of these labels.
async::Task<nlohmann::json> jobs_with(kubernetes_api::Client& client, StringMap labels);

/// The remains of an attempt with nodes whose driver is dead.
struct LeftGang {
  unsigned tries = 0;                    ///< The highest of its Jobs' try_label.
  std::optional<bool> has_one_job = {};  ///< All nodes have one Job; unset: there is no Job.
};
/// Returns the remains of the attempt. @param labels see attempt_labels()
async::Task<LeftGang> left_gang(kubernetes_api::Client& client, StringMap labels);

/// Throws EnvironmentError if an existing Job lacks one of the labels, and so is not the attempt's.
void require_labels(const kubernetes_api::Client& client, const nlohmann::json& job,
                    const StringMap& labels);

/// Creates a Job or Secret. While a quota has no room for the object, waits, and writes the reason
/// to the log. Returns null if the object exists already, if the attempt is stopped, or if the
/// object is too large, which sets `failure`.
async::Task<nlohmann::json> create_in_turn(kubernetes_api::Client& client, std::string path,
                                           nlohmann::json object, const AttemptIo& io,
                                           std::optional<Failure>& failure);
/// Changes an annotation of a Job, so that the cluster tries at once to create the Job's pod; after
/// a refusal, the cluster would wait for up to six minutes. Returns false without the right to
/// change Jobs.
async::Task<bool> ask_for_pod(kubernetes_api::Client& client, std::string job);

/// Returns the namespace, or null without the right to read it. Throws EnvironmentError if it does
/// not exist or is being deleted, which servers otherwise report as missing rights.
async::Task<nlohmann::json> require_namespace(kubernetes_api::Client& client);

/// Returns the UID:GID of pods whose steps name no user: the invoking user's, because that user
/// owns the files. If that is root, whom the namespace does not admit, and pods have files of their
/// own, returns `nobody`.
async::Task<std::string> user_of_pods(kubernetes_api::Client& client, bool has_own_files);

/// Asks whether the cluster would admit a Job's pod, by a dry run; limits, quotas, policies and
/// webhooks for pods are not applied to the Job itself. Returns a permanent refusal; nothing if
/// there is none, or without the right to create pods.
async::Task<std::optional<Refusal>> try_out_pod(kubernetes_api::Client& client,
                                                const nlohmann::json& job);

}  // namespace pipeline::orchestrators::kubernetes

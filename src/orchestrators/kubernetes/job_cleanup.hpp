/// @file
/// Removes the objects of an attempt in the cluster and in the remote store.
#pragma once

#include <string>

#include "kubernetes_api/client.hpp"
#include "orchestrators/kubernetes/pod_staging.hpp"
#include "orchestrators/removals.hpp"

namespace pipeline::orchestrators::kubernetes {

/// The objects that a cleanup uses, which outlive it.
struct CleanupContext {
  kubernetes_api::Client& client;
  Removals& removals;
  PodStaging* files;  ///< Null: pods see this machine's files.
  asio::any_io_executor executor;
};

/// Sets AttemptResult::cleanup and AttemptResult::remove_checkpoint.
/// @param job the Job's name
/// @param uid the Job's uid
void add_cleanup(const CleanupContext& context, const Attempt& attempt, const std::string& job,
                 const std::string& uid, AttemptResult& result);

}  // namespace pipeline::orchestrators::kubernetes

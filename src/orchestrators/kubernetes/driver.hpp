/// @file
/// Handles drivers in a cluster from outside: checks, starts, queries and removes them.
#pragma once

#include <string>
#include <vector>

#include "kubernetes_api/client.hpp"
#include "orchestrators/kubernetes/driver_job.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Checks whether a driver can be started, and creates nothing. Throws EnvironmentError that names
/// what is missing: the service account, its permissions, or the user's permission to start
/// a driver. Returns notices for the user, for example if the cluster does not answer questions
/// about permissions.
async::Task<std::vector<std::string>> check_driver(kubernetes_api::Client& client,
                                                   std::string service_account);

/// Throws EnvironmentError if the cluster would refuse the driver's pod. Creates nothing.
/// @param driver its image may be missing
async::Task<> try_out_driver(kubernetes_api::Client& client, DriverJob driver);

/// Creates the Job, its Secret and its Lease.
async::Task<> start_driver(kubernetes_api::Client& client, DriverJob driver);

/// Returns `metadata.ownerReferences` for objects of the Job of this name; null without such a Job.
async::Task<nlohmann::json> owned_by_driver(kubernetes_api::Client& client, std::string name);

/// The status of a driver's Job.
struct DriverStatus {
  bool goes_on = false;         ///< The Job exists, has not ended, and is not being deleted.
  std::string holder;           ///< The pod or process that holds the Lease; empty: none.
  std::string waits_for;        ///< Why the Job's pod has not started, if the user should know.
  std::string failure;          ///< The termination message of the last failed pod.
  bool will_not_start = false;  ///< The pod will not start; `waits_for` has the reason.
};
/// Asks the cluster for the status of a driver. @param name driver_name()
async::Task<DriverStatus> driver_status_of(kubernetes_api::Client& client, std::string name);
/// Returns only whether the driver continues; gives up soon if the cluster does not respond.
async::Task<bool> driver_continues(kubernetes_api::Client& client, std::string name);

/// Returns whether a pod of the driver exists, even if its Job was removed.
async::Task<bool> driver_has_pod(kubernetes_api::Client& client, std::string name);

/// Removes the Job with its pod, Lease and Secret; running steps continue.
async::Task<> remove_driver(kubernetes_api::Client& client, std::string name);

}  // namespace pipeline::orchestrators::kubernetes

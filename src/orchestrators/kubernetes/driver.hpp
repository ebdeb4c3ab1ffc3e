/// @file
/// Drivers in a cluster, as they are handled from outside: what they need, begun, asked after,
/// removed.
#pragma once

#include <string>
#include <vector>

#include "kubernetes/client.hpp"
#include "orchestrators/kubernetes/driver_job.hpp"

namespace pipeline::orchestrators {

/// Throws EnvironmentError that says what is missing: the service account, its rights, or ours to
/// begin a driver. Makes nothing.
/// @return what the user should know: where nobody lets us ask
async::Task<std::vector<std::string>> check_driver(kubernetes::Client& client,
                                                   std::string service_account);

/// Makes the Job, and what goes with it.
async::Task<> start_driver(kubernetes::Client& client, DriverJob driver);

/// `metadata.ownerReferences` of what is to go with the Job of this name; null if there is no such
/// Job.
async::Task<nlohmann::json> owned_by_driver(kubernetes::Client& client, std::string name);

/// Of the Job with this name.
struct DriverStatus {
  bool goes_on = false;   ///< It is there, and has not ended.
  std::string holder;     ///< The pod, or other process, that holds the Lease; empty: none.
  std::string waits_for;  ///< Why its pod has not begun, if people should know.
  std::string failure;    ///< What the last pod that failed said at its end.
  bool hopeless = false;  ///< It will not begin; `waits_for` says why.
};
async::Task<DriverStatus> driver_status_of(kubernetes::Client& client, std::string name);
/// No more than whether it goes on; a cluster that does not answer soon is not waited for.
async::Task<bool> driver_continues(kubernetes::Client& client, std::string name);

/// With its pod, Lease and Secret; steps that run stay.
async::Task<> remove_driver(kubernetes::Client& client, std::string name);

}  // namespace pipeline::orchestrators

/// @file
/// Drivers in a cluster, as they are handled from outside: what they need, begun, asked after, removed.
#pragma once

#include <string>
#include <vector>

#include "kubernetes/client.hpp"
#include "orchestrators/kubernetes/driver_job.hpp"

namespace pipeline {

/// Throws EnvironmentError that says what is missing: the service account, its rights, or ours to begin a driver. Makes nothing.
/// @return what the user should know: where nobody lets us ask
Task<std::vector<std::string>> check_driver(kubernetes::Client& client, std::string service_account);

/// Makes the Job, and what goes with it.
Task<> start_driver(kubernetes::Client& client, DriverJob driver);

/// `metadata.ownerReferences` of what is to go with the Job of this name; null if there is no such Job.
Task<nlohmann::json> owned_by_driver(kubernetes::Client& client, std::string name);

/// Of the Job with this name.
struct DriverNews {
  bool goes_on = false;   ///< It is there, and has not ended.
  std::string holder;     ///< The pod, or other process, that holds the Lease; empty: none.
  std::string waits_for;  ///< Why its pod has not begun, if people should know.
  std::string failure;    ///< What the last pod that failed said at its end.
  bool hopeless = false;  ///< It will not begin; `waits_for` says why.
};
Task<DriverNews> news_of_driver(kubernetes::Client& client, std::string name);
/// No more than whether it goes on; a cluster that does not answer soon is not waited for.
Task<bool> driver_goes_on(kubernetes::Client& client, std::string name);

/// With its pod, Lease and Secret; steps that run stay.
Task<> remove_driver(kubernetes::Client& client, std::string name);

}  // namespace pipeline

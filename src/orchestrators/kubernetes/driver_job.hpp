/// @file
/// The driver of a run as the objects that a cluster makes of it: a Job whose pod is begun again as
/// often as it is lost. Pure.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <pipeline/settings.hpp>

#include "orchestrators/kubernetes/driver_image.hpp"
#include "orchestrators/kubernetes/pod_files.hpp"

namespace pipeline::orchestrators {

struct DriverJob {
  std::string run_id, pipeline;
  std::string owner;  ///< Value of the label pipe.state.
  std::string service_account;
  std::string user;   ///< UID:GID, whose the state folder is.
  DriverImage image;  ///< Started with `arguments`.
  std::vector<std::string> arguments;
  std::filesystem::path state;  ///< Seen in the pod under the same path ...
  bool has_own_state = false;   ///< ... or there only, and empty at the beginning of each pod.
  SharedClaim claim;            ///< That holds it, if it has a name.
  std::vector<std::string> pull_secrets;
  StringMap variables;  ///< Of the caller's environment, for the steps; never to be shown.
};

/// Of the Job, the Secret and the Lease.
std::string driver_name(const std::string& run_id);
nlohmann::json driver_manifest(const DriverJob& driver);
/// Not to be shown; nothing for a driver without variables.
std::optional<nlohmann::json> driver_secret(const DriverJob& driver);

}  // namespace pipeline::orchestrators

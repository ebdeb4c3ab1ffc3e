/// @file
/// The cluster objects of a run's driver: a Job whose pod is restarted whenever it is lost. Pure.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <pipeline/spec.hpp>

#include "orchestrators/kubernetes/driver_image.hpp"
#include "orchestrators/kubernetes/pod_files.hpp"

namespace pipeline::orchestrators::kubernetes {

struct DriverJob {
  std::string run_id, pipeline;
  std::string owner;  ///< Value of the label pipe.state.
  std::string service_account;
  std::string user;   ///< UID:GID of the state folder's owner.
  DriverImage image;  ///< Started with `arguments`.
  std::vector<std::string> arguments;
  std::filesystem::path state;  ///< Mounted in the pod under the same path.
  /// The pod has a state folder of its own, empty at its start, instead of `state`.
  bool has_own_state = false;
  SharedClaim claim;  ///< The claim that contains `state`, if it has a name.
  std::vector<std::string> pull_secrets;
  KubernetesSettings settings;     ///< See driver_settings().
  nlohmann::json patch = nullptr;  ///< A merge patch of the Job, applied last.
  StringMap variables;  ///< Variables of the user's environment for the steps; must never be shown.
};

/// Returns the settings of a driver: labels, annotations and security contexts on which all steps
/// agree. The driver runs as the owner of the state folder, without privileges.
KubernetesSettings driver_settings(const std::vector<const StepSpec*>& steps);

/// Returns the name of the Job, the Secret and the Lease.
std::string driver_name(const std::string& run_id);
/// Returns the driver's Job.
nlohmann::json driver_manifest(const DriverJob& driver);
/// Returns the Secret with the driver's variables, which must not be shown; nothing for a driver
/// without variables.
std::optional<nlohmann::json> driver_secret(const DriverJob& driver);

}  // namespace pipeline::orchestrators::kubernetes

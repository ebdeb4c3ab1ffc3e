/// @file
/// The services of a step as further containers of its pod, and what their status says. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "orchestrators/kubernetes/pod_files.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Folder of the pod in which its containers tell one another that they are ready or have ended
/// (agent/services.hpp).
inline constexpr const char* services_folder = "/pipe/services";

/// Returns the name of the service's container.
std::string service_container(const std::string& name);

/// The properties that all services of a pod share.
struct ServiceOptions {
  std::string agent;        ///< Path of the agent in the pod's containers.
  const PodFiles& files;    ///< Those of the step: services see its code, its inputs and the agent.
  const StringMap& images;  ///< Keyed by service; where one is missing, ServiceSpec::image.
  bool pull;                ///< Nodes may pull images.
};

/// Adds the containers of the services to a pod, in which they are reached by their names. Throws
/// InputError if two of them have the same port.
void add_services(nlohmann::json& pod, const AttemptSpec& attempt, const ServiceOptions& options);

/// Returns the status of a service that waits for its image, or cannot start; null if there is
/// none.
const nlohmann::json& waiting_service(const nlohmann::json& pod);
/// Returns true if all services of the pod have been ready.
bool services_are_ready(const nlohmann::json& pod);
/// A service that is not ready yet: its failure if it is not ready within `limit` from its start.
struct LateService {
  Failure failure;
  std::chrono::seconds limit;
};
/// Returns the running service that has to be ready first. The driver applies the limit, because
/// the node counts failed checks instead of time, and a check that hangs takes longer than a
/// second.
std::optional<LateService> service_to_wait_for(const nlohmann::json& pod);
/// Returns the failure of the service that has ended before the step.
/// @param step_has_begun whether the step is known to have begun: a pod's status may leave out that
/// a service was ready for a short time
std::optional<Failure> failure_of_service(const nlohmann::json& pod, bool step_has_begun);

}  // namespace pipeline::orchestrators::kubernetes

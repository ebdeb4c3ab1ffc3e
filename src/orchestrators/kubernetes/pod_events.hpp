/// @file
/// What the cluster notes about a Job or a pod: its events.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "kubernetes/client.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// Returns the list of an object's events; an empty one if they cannot be read.
/// @param selector begin of a field selector: empty, or ends with a comma
async::Task<nlohmann::json> events_of(kubernetes::Client& client, std::string name,
                                      std::string selector);

/// Adds the events to the failure's details, unless it says the same already.
void add_events(Failure& failure, const nlohmann::json& events);

}  // namespace pipeline::orchestrators

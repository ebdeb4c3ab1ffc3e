/// @file
/// Reads what a pod's stager (stager/main.cpp) reports in the status of its container. Pure.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Returns the failure in a message of the stager, if any.
/// @param pod the pod for messages: `the pod x on node y`
std::optional<Failure> stager_failure(const std::string& message, const std::string& pod);
/// Returns the lines of the step's log on the checkpoint that the pod's stager has restored, and on
/// the node's cache; empty if there was neither.
std::string stager_notes(const nlohmann::json& pod);

}  // namespace pipeline::orchestrators::kubernetes

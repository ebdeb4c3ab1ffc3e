/// @file
/// Advice for an image that a node cannot pull. Pure.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Returns advice for a pod that waits for that image, from the cluster's messages. Nodes have
/// other credentials and CAs than this machine.
/// @param messages the cluster's messages and warnings; the kubelet's last message is only that it
/// waits before a retry
std::vector<std::string> pull_advice(const nlohmann::json& pod, const std::string& image,
                                     const std::string& messages);
/// Gives a failure the advice from its messages. @param unfetched as in PodState; empty: changes
/// nothing
void advise_on_pull(const nlohmann::json& pod, const std::string& unfetched, Failure& failure);

}  // namespace pipeline::orchestrators::kubernetes

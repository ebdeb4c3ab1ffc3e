/// @file
/// What to do about an image that a node cannot fetch. Pure.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace pipeline::orchestrators {

/// From what the cluster has said of this pod, which waits for that image; the nodes are not this
/// machine, and know other credentials and CAs.
/// @param said its messages and warnings: a kubelet's own last word is only that it waits before it
/// tries again
std::vector<std::string> pull_advice(const nlohmann::json& pod, const std::string& image,
                                     const std::string& said);

}  // namespace pipeline::orchestrators

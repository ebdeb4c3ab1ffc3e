/// @file
/// Patches Kubernetes objects. Pure.
#pragma once

#include <nlohmann/json.hpp>

namespace pipeline::orchestrators::kubernetes {

/// Applies a JSON merge patch (RFC 7386), except for lists whose items all have a `name`
/// (containers, volumes, variables): items of the same name are merged, others are added. Any other
/// list is replaced.
void merge_patch(nlohmann::json& object, const nlohmann::json& patch);

}  // namespace pipeline::orchestrators::kubernetes

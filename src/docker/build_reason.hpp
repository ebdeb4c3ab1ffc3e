/// @file
/// Why an image has to be built: what of it differs from the most similar one that the engine has.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "docker/image_plan.hpp"

namespace pipeline::docker {

/// `new`, or such as `requirements changed since pipe:env-1a2b (added joblib==1.4.2)`.
/// @param images GET /images/json: those with the label `pipe.parts` and the same parent image are
/// compared
std::string build_reason(const PlanParts& parts, const nlohmann::json& images);

/// For the label: sorted and without line ends.
std::string parts_to_label(const PlanParts& parts);

}  // namespace pipeline::docker

/// @file
/// Explains why an image has to be built: its differences from the engine's most similar image.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "docker/image_plan.hpp"

namespace pipeline::docker {

/// Returns `new`, or a reason such as `requirements changed (added joblib==1.5.2), compared with
/// pipe:env-1a2b`.
/// @param images response of GET /images/json; images with the label `pipe.parts` and the same
/// parent image are compared
/// @param layers of the locked packages; those that the compared image shares are not made again
std::string build_reason(const PlanParts& parts, const nlohmann::json& images,
                         const PackageLayers& layers = {});

/// Returns the value of the label `pipe.parts`: sorted and without line ends.
std::string parts_to_label(const PlanParts& parts);

}  // namespace pipeline::docker

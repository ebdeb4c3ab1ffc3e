/// @file
/// The parameters of a build request to the engine.
#pragma once

#include <string>

#include "docker/engine_api.hpp"
#include "docker/image_builder.hpp"
#include "docker/image_plan.hpp"

namespace pipeline::docker {

/// Returns the query of `POST /build`: the plan's settings, and the labels that identify the image.
std::string build_query(const ImagePlan& plan, const ImageStatus& status, const EngineInfo& engine,
                        const std::string& run_id);

}  // namespace pipeline::docker

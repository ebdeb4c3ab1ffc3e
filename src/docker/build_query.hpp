/// @file
/// The parameters with which the engine is asked for a build.
#pragma once

#include <string>

#include "docker/engine_api.hpp"
#include "docker/image_builder.hpp"
#include "docker/image_plan.hpp"

namespace pipeline::docker {

/// Returns the query of `POST /build`: what the plan asks for, and the labels by which the image is
/// found again.
std::string build_query(const ImagePlan& plan, const ImageStatus& status, const EngineInfo& engine,
                        const std::string& run_id);

}  // namespace pipeline::docker

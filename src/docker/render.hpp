/// @file
/// Renders one step's image plan for `pipe render`, without an engine.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "docker/image_plan.hpp"

namespace pipeline::docker {

/// Returns the Dockerfile (or why there is none) and the context's files with their sizes. Ends
/// with a line end.
std::string render_plan(const ImagePlan& plan);

/// Returns the plan as JSON: {build, parent_image, dockerfile, context: [{path, bytes}], host_only:
/// [path], notices, parent}.
nlohmann::json plan_to_json(const ImagePlan& plan);

}  // namespace pipeline::docker

/// @file
/// What `pipe render` shows of one step's image: no engine is asked.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "docker/image_plan.hpp"

namespace pipeline::docker {

/// The Dockerfile (or why there is none) and the context's files with their sizes, for people. Ends
/// with a line end.
std::string render_plan(const ImagePlan& plan);

/// The same for programs: {build, parent_image, dockerfile, context: [{path, bytes}], host_only:
/// [path], notices, parent}.
nlohmann::json plan_to_json(const ImagePlan& plan);

}  // namespace pipeline::docker

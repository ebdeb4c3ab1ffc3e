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

/// Returns the Dockerfile with caches that are named by all who can write to them: the parents, and
/// what the step's settings run before or while a cache is mounted. Names and versions that come
/// from a distribution are as trusted as its image. A project's own cache is its folder's.
std::string with_own_caches(std::string dockerfile, const ImagePlan& plan,
                            const ImageStatus& status, const BuilderOptions& options);

}  // namespace pipeline::docker

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

/// Returns the Dockerfile with the names of its cache mounts filled in. A name is a digest over
/// everything that can write to the cache: the parent images, and the settings whose programs run
/// before the cache is mounted, or while it is. Builds share a cache only if all of this is equal,
/// so that no untrusted build can poison the cache of another one. Packages of the distribution are
/// as trusted as its image, and do not count. With a local project, the project's folder counts.
std::string with_own_caches(std::string dockerfile, const ImagePlan& plan,
                            const ImageStatus& status, const BuilderOptions& options);

}  // namespace pipeline::docker

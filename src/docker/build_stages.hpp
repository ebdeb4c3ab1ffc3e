/// @file
/// The stages of classic builds. The classic builder keeps stages as unnamed images, and those of
/// pipe's Dockerfiles contain this machine's addresses and logins of package indexes.
#pragma once

#include <ctime>
#include <limits>
#include <string>

#include "async/task.hpp"
#include "docker/engine_api.hpp"

namespace pipeline::docker {

/// Label of a stage; its value identifies the build. A BuildKit build leaves no stages.
inline constexpr const char* stage_label = "pipe.stage";

/// Removes the stages with this label, `pipe.stage` or `pipe.stage=BUILD`. Repeats refused
/// removals, because a stage cannot be removed while another image is based on it or a container
/// uses it. Logs a warning if stages are left, and throws nothing: the build's own result matters
/// more.
/// @param made_before seconds since 1970 by the engine's clock; younger stages are not removed
async::Task<> remove_stages(EngineApi& engine, std::string label,
                            std::time_t made_before = std::numeric_limits<std::time_t>::max());

}  // namespace pipeline::docker

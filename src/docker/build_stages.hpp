/// @file
/// The stages of classic builds. The classic builder keeps them as unnamed images, and pipe's
/// stages contain how this machine reaches package indexes.
#pragma once

#include <ctime>
#include <limits>
#include <string>

#include "async/task.hpp"
#include "docker/engine_api.hpp"

namespace pipeline::docker {

/// Label of a stage; its value is the build's. A BuildKit build has no stages that stay.
inline constexpr const char* stage_label = "pipe.stage";

/// Removes the stages with this label, `pipe.stage` or `pipe.stage=BUILD`. Repeats refused
/// removals, because a stage cannot be removed while another is based on it or a container uses it.
/// Logs a warning if stages are left, and throws nothing: the build's own result matters more.
/// @param made_before seconds since 1970, of the engine's clock; younger stages stay
async::Task<> remove_stages(EngineApi& engine, std::string label,
                            std::time_t made_before = std::numeric_limits<std::time_t>::max());

}  // namespace pipeline::docker

/// @file
/// The standard streams of a container as one connection in both directions.
#pragma once

#include <memory>
#include <string>

#include "async/task.hpp"
#include "docker/engine_api.hpp"

namespace pipeline::docker {

/// Attaches to a container that was created with OpenStdin and has not been started. Writing goes
/// to its standard input, which end_writing() ends; reading returns its output: bytes of a
/// terminal, or frames (log_frames.hpp). Throws EnvironmentError, and EngineError if the engine
/// refuses.
async::Task<std::unique_ptr<net::Connection>> attach_raw(EngineApi& engine, std::string container);

}  // namespace pipeline::docker

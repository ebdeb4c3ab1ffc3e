/// @file
/// The standard streams of a container as one connection in both directions.
#pragma once

#include <string>

#include <boost/asio/local/stream_protocol.hpp>

#include "async/task.hpp"
#include "docker/engine_api.hpp"

namespace pipeline::docker {

using RawStream = asio::local::stream_protocol::socket;

/// Attaches to a container that was created with OpenStdin. What is written goes to its standard
/// input; a shutdown for sending ends that. What is read is its output: bytes of a terminal, or
/// frames (log_frames.hpp). Only for an engine at a Unix socket; throws EnvironmentError for
/// others, and EngineError if the engine refuses.
async::Task<RawStream> attach_raw(EngineApi& engine, std::string container);

}  // namespace pipeline::docker

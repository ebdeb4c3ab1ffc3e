/// @file
/// The standard streams of a container as one connection in both directions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "async/task.hpp"
#include "docker/engine_api.hpp"

namespace pipeline::docker {

/// Attaches to a container that was created with OpenStdin and has not been started. Writing goes
/// to its standard input, which end_writing() ends; reading returns its output: bytes of a
/// terminal, or frames (log_frames.hpp). Throws EnvironmentError, and EngineError if the engine
/// refuses.
async::Task<std::unique_ptr<net::Connection>> attach_raw(EngineApi& engine, std::string container);

/// The streams of a command in a running container.
struct ExecStream {
  std::string id;  ///< Identifier of the engine's `exec`, for exec_code().
  std::unique_ptr<net::Connection> connection;
  std::string first_output;  ///< Output that has already been read from the connection.
};
/// Starts a command in a running container, with the container's user and variables, and connects
/// with it as attach_raw() does. Throws as attach_raw() does.
async::Task<ExecStream> start_exec(EngineApi& engine, std::string container,
                                   std::vector<std::string> words, bool has_terminal);
/// Returns the exit code of a command whose output has ended; -1 if the engine does not know the
/// exit code within about two seconds.
async::Task<int> exec_code(EngineApi& engine, std::string id);

}  // namespace pipeline::docker

/// @file
/// Tells Podman from Docker, whose messages and layers differ.
#pragma once

#include "docker/engine_api.hpp"
#include "docker/engine_connection.hpp"
#include "support/run_task.hpp"

namespace pipeline::test {

/// Returns true if the engine of DOCKER_HOST is Podman.
inline bool is_podman() {
  asio::io_context loop;
  docker::EngineApi engine(loop, docker::find_endpoint());
  return run_task(loop, engine.info())->podman;
}

}  // namespace pipeline::test

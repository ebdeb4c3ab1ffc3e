/// @file
/// The address of a test's own server that answers as a Docker Engine.
#pragma once

#include <cstdlib>

#include "docker/engine_api.hpp"
#include "support/http_server.hpp"

namespace pipeline::test {

/// Returns the endpoint that pipe finds if DOCKER_HOST has the server's address.
inline docker::Endpoint endpoint_of(const HttpServer& server) {
  const auto url = server.url();
  setenv("DOCKER_HOST", ("tcp://127.0.0.1" + url.substr(url.rfind(':'))).c_str(), 1);
  auto endpoint = docker::find_endpoint();
  unsetenv("DOCKER_HOST");
  return endpoint;
}

}  // namespace pipeline::test

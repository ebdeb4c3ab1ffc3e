/// @file
/// The image registry of the test bed (scripts/testbed/registry). It has TLS by a CA of its own,
/// which the engine trusts, and asks for a login.
#pragma once

#include <fstream>
#include <map>
#include <string>

#include "core/base64.hpp"
#include "net/http.hpp"

namespace pipeline::test {

/// Returns the variables HOST, STRANGER (another registry, whose CA is not trusted), CA, LOGIN,
/// PASSWORD and CONFIG (for DOCKER_CONFIG); empty if the registry has not been started.
inline const std::map<std::string, std::string>& registry() {
  static const auto variables = [] {
    std::map<std::string, std::string> read;
    std::ifstream file("/var/lib/pipe-registry/environment");
    for (std::string line; std::getline(file, line);)
      read[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
    return read;
  }();
  return variables;
}

/// Sends a request to the registry directly, not by way of the engine. @param path such as
/// `/v2/NAME/manifests/TAG`
inline async::Task<net::Response> ask_registry(net::HttpClient& http, std::string method,
                                               std::string path) {
  net::Request request;
  request.method = std::move(method);
  request.url = "https://" + registry().at("HOST") + path;
  request.headers.push_back(
      "Authorization: Basic " +
      core::encode_base64(registry().at("LOGIN") + ":" + registry().at("PASSWORD")));
  request.headers.push_back("Accept: application/vnd.docker.distribution.manifest.v2+json");
  request.tls.ca_file = registry().at("CA");
  co_return co_await http.send(std::move(request));
}

}  // namespace pipeline::test

/// @file
/// The second engine (scripts/testbed/second-engine), for tests of engines on other machines.
#pragma once

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

namespace pipeline::test {

/// Returns the variables with which the second engine is reached, such as TCP and CERTIFICATES;
/// empty if it has not been started.
inline const std::map<std::string, std::string>& second_engine() {
  static const auto variables = [] {
    std::map<std::string, std::string> read;
    std::ifstream file("/var/lib/pipe-second-engine/environment");
    for (std::string line; std::getline(file, line);)
      read[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
    return read;
  }();
  return variables;
}

/// Sets DOCKER_HOST, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH in this process for the second engine.
inline void use_second_engine_over_tls() {
  setenv("DOCKER_HOST", second_engine().at("TCP").c_str(), 1);
  setenv("DOCKER_TLS_VERIFY", "1", 1);
  setenv("DOCKER_CERT_PATH", second_engine().at("CERTIFICATES").c_str(), 1);
}

}  // namespace pipeline::test

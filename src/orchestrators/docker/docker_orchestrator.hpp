/// @file
/// Runs steps in containers of a Docker Engine or Podman, or of several.
#pragma once

#include <memory>

#include "docker/engine_api.hpp"
#include "orchestrators/options.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

namespace docker_engine {

/// The engine's name for the network of its machine, which containers can share.
inline constexpr const char* host_network = "host";

/// Runs steps on one engine.
class OneEngine : public Orchestrator {
 public:
  virtual docker::EngineApi& engine() = 0;
  /// Returns the response of GET /info, requested once.
  virtual async::Task<const nlohmann::json*> system() = 0;
  /// Returns true if containers of this engine can run pipe's agent. Throws EnvironmentError if
  /// they cannot, and the step's nodes have several processes each.
  virtual async::Task<bool> has_agents(const Attempt& attempt, unsigned nodes, unsigned ranks) = 0;
};

std::unique_ptr<OneEngine> make_one_engine(asio::io_context& loop, OrchestratorOptions options,
                                           docker::Endpoint endpoint);

}  // namespace docker_engine

/// Returns the orchestrator for the engines that the connection names (docker/engines.hpp).
std::unique_ptr<Orchestrator> make_docker_orchestrator(asio::io_context& loop,
                                                       OrchestratorOptions options);

}  // namespace pipeline::orchestrators

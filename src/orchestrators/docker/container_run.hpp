/// @file
/// Runs one container from its creation to its removal.
#pragma once

#include "docker/engine_api.hpp"
#include "orchestrators/docker/container_spec.hpp"
#include "orchestrators/removals.hpp"

namespace pipeline::orchestrators::docker_engine {

/// The objects that all containers of an attempt share.
struct RunContext {
  docker::EngineApi& engine;
  const Attempt& attempt;
  const std::string& image;  ///< Name of the step's image, for messages.
  Removals& removals;
};

/// Runs the attempt in a container of its own, or joins the one that an earlier driver of the same
/// attempt has left. When this returns or throws, the container has ended and its removal has
/// begun. Throws the log's exceptions, and EnvironmentError if the engine is lost.
/// @param options its `elsewhere` is set if the engine turns out not to see this machine's files
async::Task<AttemptResult> run_container(const RunContext& context, ContainerOptions& options);

}  // namespace pipeline::orchestrators::docker_engine

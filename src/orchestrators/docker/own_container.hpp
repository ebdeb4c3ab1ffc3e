/// @file
/// The container of an attempt: created, or found where a dead driver has left it.
#pragma once

#include <string>

#include "docker/engine_api.hpp"
#include "orchestrators/docker/container_spec.hpp"

namespace pipeline::orchestrators::docker_engine {

struct OwnContainer {
  std::string id;
  bool started = false;  ///< The container runs or has ended already.
  bool gated = false;    ///< Its command is behind the preflight's gate.
  /// The container writes to this attempt's folder, or to a volume whose files can be copied.
  bool usable = false;
  bool copies = false;  ///< Its files are in a volume, and are copied in and out.
};

/// Creates the attempt's container. If a dead driver has left one, returns that if it is usable, or
/// else removes it first. Throws EngineError if the engine refuses, and EnvironmentError if the
/// name belongs to another container.
/// @param options its `elsewhere` is set if the engine turns out not to see this machine's files
async::Task<OwnContainer> obtain_container(docker::EngineApi& engine, const Attempt& attempt,
                                           ContainerOptions& options);

}  // namespace pipeline::orchestrators::docker_engine

/// @file
/// A step's files on an engine of another machine, where this machine's folders cannot be mounted.
/// Inputs are copied into an anonymous volume before the start, and outputs out of it after the
/// end; the volume is removed with the container.
#pragma once

#include "docker/engine_api.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Returns true if the engine did not find a folder of this attempt although it exists: the engine
/// then runs on another machine.
bool is_elsewhere(const docker::EngineError& error, const Attempt& attempt);

/// Returns true if a container of Podman that has not been started has this machine's folders.
/// Needed because Podman creates a missing folder, where Docker refuses to create the container.
/// Always false for engines that mount only at the start, such as Docker.
async::Task<bool> has_files_of(docker::EngineApi& engine, const Attempt& attempt,
                               std::string container);

/// Copies code, inputs, the checkpoint and empty folders into a container that has not been
/// started. @param init see ContainerOptions
async::Task<> copy_in(docker::EngineApi& engine, const Attempt& attempt,
                      const std::string& container, std::filesystem::path init = {});
/// Copies the step's outputs to the attempt's outputs folder.
async::Task<> copy_out(docker::EngineApi& engine, const Attempt& attempt,
                       const std::string& container);
/// Copies the remains of a failed attempt: its checkpoint, and its outputs if they can be read.
/// Failures are reported in the step's log only, since the attempt has failed for another reason.
/// @param outputs true: the outputs are copied as well
async::Task<> copy_rest(docker::EngineApi& engine, const Attempt& attempt,
                        const std::string& container, bool outputs);

}  // namespace pipeline::orchestrators::docker_engine

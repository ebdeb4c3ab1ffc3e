/// @file
/// A step's files on an engine of another machine, where nothing of this one can be mounted: they
/// are copied in before the start, the outputs out after the end. They live in a volume of the
/// container's own, which goes with it.
#pragma once

#include "docker/engine_api.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// True if the engine looked for a folder of this attempt, which is there, and did not find it: it
/// is an engine elsewhere.
bool is_elsewhere(const docker::EngineError& error, const Attempt& attempt);

/// Code, inputs and empty folders, into a container that has not been started.
async::Task<> copy_in(docker::EngineApi& engine, const Attempt& attempt,
                      const std::string& container);
/// What the step has written, into the attempt's outputs.
async::Task<> copy_out(docker::EngineApi& engine, const Attempt& attempt,
                       const std::string& container);

}  // namespace pipeline::orchestrators

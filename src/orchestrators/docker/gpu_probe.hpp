/// @file
/// The GPUs of an engine's machine, where NVML does not show them: a short container with all of
/// them looks.
#pragma once

#include "docker/gpu_access.hpp"
#include "gpu/inventory.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// @param image  one that the engine has, with a shell
/// @param labels of the container, so that it is found if this driver dies
/// What goes wrong is in the Inventory; throws EnvironmentError when the engine is lost.
async::Task<gpu::Inventory> probe_gpus(docker::EngineApi& engine, docker::GpuAccess& access,
                                       std::string image, StringMap labels);

}  // namespace pipeline::orchestrators

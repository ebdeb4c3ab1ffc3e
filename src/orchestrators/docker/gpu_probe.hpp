/// @file
/// Lists the GPUs of an engine's machine where NVML does not show them, from a short-lived
/// container with all GPUs.
#pragma once

#include "docker/gpu_access.hpp"
#include "gpu/inventory.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Errors are in the Inventory; throws EnvironmentError if the engine is lost.
/// @param image  an image with a shell that the engine has
/// @param labels labels of the container, so that it is found if this driver dies
/// @param cancel a stop ends the container, as when the driver hangs; the engine then counts as
/// lost
async::Task<gpu::Inventory> probe_gpus(docker::EngineApi& engine, docker::GpuAccess& access,
                                       std::string image, StringMap labels,
                                       core::CancelSource& cancel);

}  // namespace pipeline::orchestrators::docker_engine

/// @file
/// Lists the GPUs of an engine's machine where NVML does not show them, from a short-lived
/// container with all GPUs.
#pragma once

#include "docker/gpu_access.hpp"
#include "gpu/inventory.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::docker_engine {

/// Returns the GPUs; an error of nvidia-smi is in the Inventory. Throws EnvironmentError if the
/// engine is lost.
/// @param image  an image with a shell that the engine has
/// @param labels labels of the container, so that it is found if this driver dies
/// @param cancel a stop ends the container, for example if NVIDIA's driver hangs; EnvironmentError
/// is thrown then
async::Task<gpu::Inventory> probe_gpus(docker::EngineApi& engine, docker::GpuAccess& access,
                                       std::string image, StringMap labels,
                                       core::CancelSource& cancel);

}  // namespace pipeline::orchestrators::docker_engine

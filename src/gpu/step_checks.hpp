/// @file
/// Checks of steps with GPUs and of placement constraints, before anything is built.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"
#include "gpu/compatibility.hpp"
#include "gpu/inventory.hpp"
#include "gpu/placement.hpp"

namespace pipeline::gpu {

/// Where the steps would run, as far as it is known.
struct StepCheckContext {
  std::string host_file;  ///< Path of the file with this machine's attributes, for messages.
  bool in_images = true;  ///< Steps run in images, not as processes of this machine.
  std::function<GpuHost(const settings::GpuRequest& request)>
      gpus;  ///< The driver, and the GPUs that the request may get; empty: not known.
  std::optional<HostAttributes> attributes;  ///< Nothing: it is open where steps will run.
  std::function<std::optional<ImageConfig>(const std::string& reference)>
      image_config;  ///< What the engine has of an image, if anything.
};

/// One diagnostic for all steps that it is true of; those that say the same are told together.
std::vector<core::Diagnostic> check_steps(const std::vector<const StepSpec*>& steps,
                                          const StepCheckContext& context);

/// The machine of this inventory, with those of its GPUs that the request may get.
GpuHost host_for(const settings::GpuRequest& request, const Inventory& inventory);

}  // namespace pipeline::gpu

/// @file
/// Checks steps with GPUs and placement constraints before anything is built.
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

/// The environment in which the steps would run, as far as it is known.
struct StepCheckContext {
  std::string host_file;  ///< Path of the file with this machine's attributes, for messages.
  bool in_images = true;  ///< Steps run in images, not as processes of this machine.
  /// The driver, and the GPUs that the request may get; empty if unknown.
  std::function<GpuHost(const settings::GpuRequest& request)> gpus;
  /// Unset if the machine on which steps will run is not known.
  std::optional<HostAttributes> attributes;
  /// Returns the engine's configuration of an image, if it has the image.
  std::function<std::optional<ImageConfig>(const std::string& reference)> image_config;
};

/// Returns the diagnostics; a diagnostic that several steps share is reported once for all of them.
std::vector<core::Diagnostic> check_steps(const std::vector<const StepSpec*>& steps,
                                          const StepCheckContext& context);

/// Returns the machine of this inventory, with those of its GPUs that the request may get.
GpuHost host_for(const settings::GpuRequest& request, const Inventory& inventory);

}  // namespace pipeline::gpu

/// @file
/// What is to be said of the steps with GPUs, and of where steps may run, before anything is built.
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

namespace pipeline::cli {

class Session;
class Progress;

/// Where the steps would run, as far as it is known.
struct GpuCheckContext {
  bool in_images = true;  ///< Steps run in images, not as processes of this machine.
  std::function<gpu::GpuHost(const settings::GpuRequest& request)>
      gpus;  ///< The driver, and the GPUs that the request may get; empty: not known.
  std::optional<gpu::HostAttributes> attributes;  ///< Nothing: it is open where steps will run.
  std::function<std::optional<gpu::ImageConfig>(const std::string& reference)>
      image_config;  ///< What the engine has of an image, if anything.
};

/// One diagnostic for all steps that it is true of; those that say the same are told together.
std::vector<core::Diagnostic> check_gpu_steps(const std::vector<const StepSpec*>& steps,
                                              const GpuCheckContext& gpu_check_context);

/// The machine of this inventory, with those of its GPUs that the request may get.
gpu::GpuHost host_for(const settings::GpuRequest& request, const gpu::Inventory& inventory);

/// Takes a warning as a text of some lines, without the last one's end.
using Say = std::function<void(std::string_view)>;

/// Throws InputError if there are errors among the diagnostics; else tells the warnings, each with
/// its place in the file, and returns them.
std::vector<core::Diagnostic> check_gpus(const PipelineSpec& pipeline,
                                         std::vector<core::Diagnostic> diagnostics, const Say& say);

/// check_gpu_steps() and check_gpus() for a session: looks at this machine and at the engine, if
/// any step needs it.
std::vector<core::Diagnostic> check_gpus(Session& session, const Say& say);

/// check_gpus(), its warnings shown, or with JSON printed as events.
void report_gpu_warnings(Session& session, Progress& progress);

/// `[{code, message, line, suggestion}]`
nlohmann::json warnings_json(const std::vector<core::Diagnostic>& warnings);

}  // namespace pipeline::cli

/// @file
/// The part of the port that knows the GPUs where attempts run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "async/task.hpp"
#include "core/cancel.hpp"
#include "gpu/inventory.hpp"

namespace pipeline::orchestrators {

/// A GPU that an attempt uses, of any run on the orchestrator's machine.
struct GpuHold {
  std::string uuid;
  std::string run, step;
  std::string holder;  ///< `container pipe-7f3a-train-1`.
};

/// Used only from the loop's thread.
class GpuProvider {
 public:
  /// Returns the GPUs of the machine where attempts run, for orchestrators that can list them.
  /// Called if NVML on this machine shows none or Capabilities::gpus_of_this_machine is false, with
  /// a step that needs GPUs and in whose environment the orchestrator may look. Returns nothing if
  /// it cannot list them, or chooses GPUs itself.
  virtual async::Task<std::optional<gpu::Inventory>> gpus(const StepSpec& step, EventSink& events,
                                                          core::CancelSource& cancel) {
    (void)step, (void)events, (void)cancel;
    co_return std::nullopt;
  }

  /// Returns the GPUs that attempts use here, including those of other drivers, alive or dead.
  /// Called before free GPUs are assigned.
  virtual async::Task<std::vector<GpuHold>> gpus_in_use() { co_return std::vector<GpuHold>{}; }

  virtual ~GpuProvider() = default;
};

}  // namespace pipeline::orchestrators

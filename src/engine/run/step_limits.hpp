/// @file
/// Limits besides job slots and GPUs: `max_parallel` of a matrix, and the machine's named limits.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/semaphore.hpp"
#include "core/file.hpp"
#include "engine/run_context.hpp"
#include "gpu/lock_folder.hpp"

namespace pipeline::engine {

/// The units of limits that an attempt holds; released at destruction.
struct HeldUnits {
  std::unique_ptr<async::Permit> place;  ///< A place among the `max_parallel` of the step's matrix.
  /// A lock for each unit of a named limit. The kernel releases the locks of a killed driver.
  std::vector<core::Descriptor> locks;
};

class StepLimits {
 public:
  explicit StepLimits(const RunContext& context) : context_(context) {}

  /// Waits until the step may run, and returns what it holds. If `stop` is stopped before, no units
  /// of named limits are taken.
  /// @param rank rank among the steps that wait; smaller goes first
  async::Task<HeldUnits> acquire(const StepSpec& step, std::size_t rank, core::CancelSource& stop);

 private:
  async::Task<std::vector<core::Descriptor>> wait_for_units(const StepSpec& step,
                                                            core::CancelSource& stop);
  async::Task<std::optional<std::vector<core::Descriptor>>> try_take(const StepSpec& step,
                                                                     core::CancelSource& stop);
  std::optional<std::vector<core::Descriptor>> units_of(const StepSpec& step,
                                                        gpu::LockFolder::Session& session) const;
  static std::string text_of(const StepSpec& step);

  const RunContext& context_;
  std::map<std::string, async::Semaphore> places_;  ///< Keyed by the name that instances share.
  /// Keyed by the awaited units. A step that waits for units takes its turn to look whether they
  /// are free.
  std::map<std::string, async::Semaphore> turns_;
  std::optional<gpu::LockFolder> folder_;  ///< Set once a step uses a limit.
};

}  // namespace pipeline::engine

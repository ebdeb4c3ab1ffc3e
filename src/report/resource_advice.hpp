/// @file
/// Advice on the resources of a pipeline's steps, from what their attempts have used.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/settings.hpp>

#include "store/run_store.hpp"

namespace pipeline::report {

/// Maximum usage by the attempts of a step, including all instances of a matrix; of a step with
/// several nodes, by one node.
struct StepUse {
  std::size_t runs = 0;                      ///< Runs in which an attempt was measured.
  std::optional<std::uint64_t> memory;       ///< Bytes.
  std::optional<double> cpus;                ///< Mean over an attempt of a second or more.
  std::optional<std::size_t> gpus;           ///< GPUs that computed at all, in such an attempt.
  bool is_killed = false;                    ///< The last attempt was killed for lack of memory.
  std::optional<std::uint64_t> killed_with;  ///< The highest limit that ended an attempt, bytes.
  std::optional<std::uint64_t> worked_with;  ///< A higher limit with which an attempt succeeded.
};

/// Returns the use of each step that was measured, by the step's name without its instance, over
/// all runs of the pipeline that the store has.
std::map<std::string, StepUse> step_uses(store::RunStore& store, const std::string& pipeline);

/// A better value for one of the step's `resources`.
struct ResourceAdvice {
  std::string setting;  ///< `memory`, `cpu_count` or `gpu_count`.
  std::string value;    ///< Text for a pipeline file.
  std::string reason;   ///< Such as `8 GiB asked, 2.1 GiB at most used in 14 runs`.
};

/// Returns advice where the step asks for much more than it has used or for hardly as much, or was
/// killed for lack of memory. Settings that are not given get no advice.
std::vector<ResourceAdvice> advise(const ResourceSettings& asked, const StepUse& used);

}  // namespace pipeline::report

/// @file
/// Finds out why an attempt has stalled.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/attempt/ranks.hpp"
#include "orchestrators/attempts.hpp"

namespace pipeline::engine {

struct StallFindings {
  /// Lines for the failure: the rank that the others wait for, what NCCL knows, what the processes
  /// wait in, and Python stacks. Secrets are masked, because command lines may contain them.
  std::vector<std::string> lines;
  /// The process that the others wait for, or the first process if that one is not known.
  orchestrators::RunningProcess process;
  bool has_stacks = false;  ///< `lines` has Python stacks.
};

/// Asks NCCL, Python and the kernel what the attempt's processes wait for. The objects that the
/// parameters refer to must outlive the task.
/// @param ranks used for a step with nodes
/// @param tell  called with each line once it is known: NCCL and Python may take seconds to answer
async::Task<StallFindings> find_stall_causes(orchestrators::AttemptRunner& runner,
                                             const orchestrators::Attempt& attempt,
                                             const Ranks& ranks,
                                             const std::vector<std::string>& secrets,
                                             const std::function<void(const std::string&)>& tell);

}  // namespace pipeline::engine

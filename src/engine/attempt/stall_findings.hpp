/// @file
/// What can be found out of an attempt that has stalled.
#pragma once

#include <string>
#include <vector>

#include "engine/attempt/ranks.hpp"
#include "orchestrators/attempts.hpp"

namespace pipeline::engine {

struct StallFindings {
  /// For the log and the failure: the rank that the others wait for, what NCCL knows, what the
  /// processes wait in, and Python stacks. Secrets are masked, because arguments may have some.
  std::vector<std::string> lines;
  /// The process that the others wait for, or the first if none is known to be.
  orchestrators::RunningProcess process;
  bool has_stacks = false;
};

/// @param ranks   used for a step with nodes
/// @param secrets outlive the call
async::Task<StallFindings> look_into_stall(orchestrators::AttemptRunner& runner,
                                           const orchestrators::Attempt& attempt,
                                           const Ranks& ranks,
                                           const std::vector<std::string>& secrets);

}  // namespace pipeline::engine

/// @file
/// What can be found out of an attempt that has stalled.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/attempt/ranks.hpp"
#include "orchestrators/attempts.hpp"

namespace pipeline::engine {

struct StallFindings {
  /// For the failure: the rank that the others wait for, what NCCL knows, what the processes wait
  /// in, and Python stacks. Secrets are masked, because arguments may have some.
  std::vector<std::string> lines;
  /// The process that the others wait for, or the first if none is known to be.
  orchestrators::RunningProcess process;
  bool has_stacks = false;
};

/// The parameters outlive the call.
/// @param ranks used for a step with nodes
/// @param tell  takes each line once it is known: NCCL and Python may take seconds to answer
async::Task<StallFindings> look_into_stall(orchestrators::AttemptRunner& runner,
                                           const orchestrators::Attempt& attempt,
                                           const Ranks& ranks,
                                           const std::vector<std::string>& secrets,
                                           const std::function<void(const std::string&)>& tell);

}  // namespace pipeline::engine

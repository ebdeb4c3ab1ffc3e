/// @file
/// The meeting of all processes of a step with nodes, as StepContext::barrier() calls it.
#pragma once

#include <stop_token>
#include <string>

namespace pipeline::dsl {

/// The place of a process among the others.
struct BarrierPlace {
  std::string address;  ///< An IP address of rank 0.
  unsigned port = 0;    ///< Free there; of barriers alone.
  unsigned rank = 0, ranks = 1;
};

/// Returns once all processes have called it equally often. Python's pl.barrier() does the same.
/// Throws std::runtime_error once `stop` is requested, and for what the system refuses.
void wait_for_all(const BarrierPlace& place, const std::stop_token& stop);

}  // namespace pipeline::dsl

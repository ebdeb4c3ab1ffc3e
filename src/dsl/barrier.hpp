/// @file
/// The barrier of all processes of a step with nodes, for StepContext::barrier().
#pragma once

#include <stop_token>
#include <string>

namespace pipeline::dsl {

/// A process of a step with nodes, and the address at which it meets the others.
struct BarrierMember {
  std::string address;  ///< An IP address of rank 0.
  unsigned port = 0;    ///< A port of that address that only barriers use.
  unsigned rank = 0, ranks = 1;
};

/// Returns once all processes have called wait_for_all() equally often, as Python's pl.barrier()
/// does. Throws std::runtime_error once `stop` is requested, or if a system call fails.
void wait_for_all(const BarrierMember& member, const std::stop_token& stop);

}  // namespace pipeline::dsl

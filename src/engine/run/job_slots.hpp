/// @file
/// Job slots: how many attempts run at a time.
#pragma once

#include "async/semaphore.hpp"
#include "orchestrators/orchestrator.hpp"
#include "orchestrators/routes.hpp"

namespace pipeline::engine {

/// Limits of concurrent attempts.
struct JobSlots {
  async::Semaphore local;   ///< On this machine.
  async::Semaphore remote;  ///< On clusters, which have a queue of their own.

  async::Semaphore& of(const orchestrators::Capabilities& orchestrator) {
    return orchestrator.on_this_machine ? local : remote;
  }
  const async::Semaphore& of(const orchestrators::Capabilities& orchestrator) const {
    return orchestrator.on_this_machine ? local : remote;
  }
};

/// Returns the maximum number of files that an attempt of any step holds open.
unsigned max_open_files(const PipelineSpec& pipeline, orchestrators::Routes& routes);

/// Returns how many attempts at a time the limit of open files allows.
/// @param open_files number of files that an attempt holds open, see Capabilities::open_files
unsigned max_attempts(unsigned open_files);

/// Returns no more slots than max_attempts().
/// @param jobs the limit that the user set; 0: core::usable_processors() on this machine, 100 on
/// clusters
JobSlots slots_for(unsigned jobs, unsigned open_files);

}  // namespace pipeline::engine

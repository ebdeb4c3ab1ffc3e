/// @file
/// Data that is recorded for a detached run beside its invocation, because the driver in the
/// cluster cannot find it out.
#pragma once

#include <optional>
#include <string>

#include "orchestrators/image_lock.hpp"
#include "store/run_store.hpp"

namespace pipeline::driver {

struct DetachedRecord {
  std::string owner;  ///< Owner of the run's Jobs, as this machine's owner_of() returns it.
  orchestrators::ImageLock images;
};

/// Records the data for the run.
void keep_detached(store::RunStore& store, const std::string& run, const DetachedRecord& detached);
/// Returns the recorded data; nothing for a run whose driver is not in a cluster.
std::optional<DetachedRecord> detached_of(store::RunStore& store, const std::string& run);

}  // namespace pipeline::driver

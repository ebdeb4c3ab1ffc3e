/// @file
/// Data recorded for a detached run in addition to its invocation: what its driver in the cluster
/// cannot find out by itself.
#pragma once

#include <optional>
#include <string>

#include "orchestrators/image_lock.hpp"
#include "store/run_store.hpp"

namespace pipeline::driver {

struct DetachedRecord {
  std::string owner;  ///< Owner of the Jobs of its steps, as this machine's owner_of() returns it.
  orchestrators::ImageLock images;
};

void keep_detached(store::RunStore& store, const std::string& run, const DetachedRecord& detached);
/// Returns nothing for a run that was not detached.
std::optional<DetachedRecord> detached_of(store::RunStore& store, const std::string& run);

}  // namespace pipeline::driver

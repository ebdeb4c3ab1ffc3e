/// @file
/// What is kept of a run that was handed to a driver in a cluster, beside how it was begun: what
/// that driver cannot find out where it is.
#pragma once

#include <optional>
#include <string>

#include "orchestrators/image_lock.hpp"
#include "store/run_store.hpp"

namespace pipeline::detached {

struct DetachedRecord {
  std::string owner;  ///< Whose Jobs its steps are, as this machine's owner_of() has it.
  orchestrators::ImageLock images;
};

void keep_detached(store::RunStore& runs, const std::string& run, const DetachedRecord& detached);
/// Nothing for a run that never was.
std::optional<DetachedRecord> detached_of(store::RunStore& runs, const std::string& run);

}  // namespace pipeline::detached

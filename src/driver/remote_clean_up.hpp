/// @file
/// Garbage collection in the remote store that a profile names.
#pragma once

#include "driver/clean_up.hpp"

namespace pipeline::driver {

/// Removes old results, and the artifacts that no result, published name, detached run or running
/// driver needs. Throws InputError without a remote store, and for a wrong age.
CleanUpReport clean_remote_store(Workspace& workspace, const CleanUp& wanted,
                                 const std::function<void(const std::string&)>& on_kept);

}  // namespace pipeline::driver

/// @file
/// Garbage collection in the remote store that a profile names.
#pragma once

#include "driver/clean_up.hpp"

namespace pipeline::driver {

/// Removes old results, and what no result, name, detached run or running driver needs. Throws
/// InputError without a remote store, and for ages and sizes that are wrong.
CleanUpReport clean_remote_store(Workspace& workspace, const CleanUp& wanted,
                                 const std::function<void(const std::string&)>& on_kept);

}  // namespace pipeline::driver
